"""Loads a SavedModel through the C API: TensorFlow's loader in C++, which TF Serving uses, too.

    python c_api.py <libtensorflow_cc.so.2> < request.json > answer.json

The request: {"model", "asked": [{"input": op, "output": [op, index], "shape", and either "kind"
(number of the type) with "data" (base64) or "strings" ([base64 …])} …]}. The answer: {"answers":
[{"shape", "values"} or {"code", "error"} …], "modules", "megabytes": the largest resident size}.
"""

import base64
import ctypes
import json
import resource
import sys
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p

FLOAT, STRING, TSTRING_SIZE = 1, 7, 24


class Output(Structure):
    _fields_ = [("op", c_void_p), ("index", c_int)]


lib = ctypes.CDLL(sys.argv[1])
for (
    name
) in "NewGraph NewStatus NewSessionOptions NewBuffer LoadSessionFromSavedModel TensorData".split():
    getattr(lib, f"TF_{name}").restype = c_void_p
for name in ("AllocateTensor", "GraphOperationByName"):
    getattr(lib, f"TF_{name}").restype = c_void_p
lib.TF_Message.restype = c_char_p
lib.TF_TensorByteSize.restype = c_size_t
lib.TF_Dim.restype = c_int64
lib.TF_Dim.argtypes = [c_void_p, c_int]
lib.TF_NumDims.argtypes = lib.TF_TensorType.argtypes = lib.TF_DeleteTensor.argtypes = [c_void_p]
lib.TF_TensorData.argtypes = lib.TF_TensorByteSize.argtypes = lib.TF_Message.argtypes = [c_void_p]
lib.TF_AllocateTensor.argtypes = [c_int, POINTER(c_int64), c_int, c_size_t]
lib.TF_GraphOperationByName.argtypes = [c_void_p, c_char_p]
lib.TF_StringInit.argtypes = [c_void_p]
lib.TF_StringCopy.argtypes = [c_void_p, c_char_p, c_size_t]
lib.TF_GetCode.argtypes = [c_void_p]


def tensor(kind, shape, size):
    dims = (c_int64 * len(shape))(*shape)
    made = lib.TF_AllocateTensor(kind, dims, len(shape), size)
    return made, lib.TF_TensorData(made)


def numbers(kind, shape, data):
    made, memory = tensor(kind, shape, len(data))
    ctypes.memmove(memory, data, len(data))
    return made


def strings(shape, items):
    made, memory = tensor(STRING, shape, TSTRING_SIZE * len(items))
    for i, item in enumerate(items):
        lib.TF_StringInit(memory + TSTRING_SIZE * i)
        lib.TF_StringCopy(memory + TSTRING_SIZE * i, item, len(item))
    return made


def load(folder):
    graph, status = lib.TF_NewGraph(), lib.TF_NewStatus()
    tags = (c_char_p * 1)(b"serve")
    lib.TF_LoadSessionFromSavedModel.argtypes = [
        c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p,
    ]  # fmt: skip
    session = lib.TF_LoadSessionFromSavedModel(
        lib.TF_NewSessionOptions(), None, folder.encode(), tags, 1, graph, None, status
    )
    assert lib.TF_GetCode(status) == 0, lib.TF_Message(status)
    return session, graph, status


def run(session, graph, status, op, value, wanted):
    feed = (Output * 1)(Output(lib.TF_GraphOperationByName(graph, op.encode()), 0))
    fetch = (Output * 1)(Output(lib.TF_GraphOperationByName(graph, wanted[0].encode()), wanted[1]))
    values, results = (c_void_p * 1)(value), (c_void_p * 1)()
    lib.TF_SessionRun.argtypes = [
        c_void_p, c_void_p, POINTER(Output), POINTER(c_void_p), c_int, POINTER(Output),
        POINTER(c_void_p), c_int, c_void_p, c_int, c_void_p, c_void_p,
    ]  # fmt: skip
    lib.TF_SessionRun(session, None, feed, values, 1, fetch, results, 1, None, 0, None, status)
    lib.TF_DeleteTensor(value)
    if lib.TF_GetCode(status):
        return {"code": lib.TF_GetCode(status), "error": lib.TF_Message(status).decode()}
    found = results[0]
    answer = {"shape": [lib.TF_Dim(found, i) for i in range(lib.TF_NumDims(found))]}
    if lib.TF_TensorType(found) == FLOAT:
        data = ctypes.string_at(lib.TF_TensorData(found), lib.TF_TensorByteSize(found))
        answer["values"] = list(memoryview(data).cast("f"))
    lib.TF_DeleteTensor(found)
    return answer


request = json.load(sys.stdin)
loaded = load(request["model"])
answers = []
for asked in request["asked"]:
    if "strings" in asked:
        fed = strings(asked["shape"], [base64.b64decode(item) for item in asked["strings"]])
    else:
        fed = numbers(asked["kind"], asked["shape"], base64.b64decode(asked["data"]))
    answers.append(run(*loaded, asked["input"], fed, asked["output"]))
answer = {
    "answers": answers,
    "modules": sorted(sys.modules),
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
}
json.dump(answer, sys.stdout)
