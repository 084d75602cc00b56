"""TF Serving's two interfaces around a loaded SavedModel, on this machine: for tests of the client.

Requests, answers and errors have the form that TF Serving gives them; what it does inside, such as
batching, is not imitated. `trouble` holds errors (or seconds to wait) for the requests to come.
"""

import base64
import concurrent.futures
import http.server
import json
import threading
import time

import grpc
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

HTTP = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.UNAVAILABLE: 503,
}


class Refusal(Exception):
    """An answer of the server that is an error: (code, text)."""


class Model:
    """What both interfaces serve."""

    def __init__(self, version_dir, name):
        self.name = name
        self.signatures = tf.saved_model.load(version_dir).signatures
        with open(f"{version_dir}/saved_model.pb", "rb") as file:
            saved = saved_model_pb2.SavedModel.FromString(file.read())
        self.signature_map = get_model_metadata_pb2.SignatureDefMap(
            signature_def=saved.meta_graphs[0].signature_def
        )
        self.trouble = []
        self.batches = []

    def check(self, name):
        if self.trouble:
            trouble = self.trouble.pop(0)
            if not isinstance(trouble, Refusal):
                time.sleep(trouble)
            else:
                raise trouble
        if name != self.name:
            raise Refusal(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {name}")

    def predict(self, name, signature, inputs):
        self.check(name)
        self.batches += [value.shape[0] for value in inputs.values() if value.shape.rank]
        try:
            return self.signatures[signature](**inputs)
        except tf.errors.InvalidArgumentError as error:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, error.message) from None

    def status(self):
        answer = get_model_status_pb2.GetModelStatusResponse()
        answer.model_version_status.add(version=1, state="AVAILABLE")
        return answer


class Services(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    def __init__(self, model):
        self.model = model

    def _guard(self, context, answer):
        try:
            return answer()
        except Refusal as refusal:
            context.abort(*refusal.args)

    def Predict(self, request, context):
        def answer():
            inputs = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
            spec = request.model_spec
            found = self.model.predict(spec.name, spec.signature_name, inputs)
            outputs = {name: tf.make_tensor_proto(value) for name, value in found.items()}
            return predict_pb2.PredictResponse(outputs=outputs)

        return self._guard(context, answer)

    def GetModelStatus(self, request, context):
        self._guard(context, lambda: self.model.check(request.model_spec.name))
        return self.model.status()

    def GetModelMetadata(self, request, context):
        self._guard(context, lambda: self.model.check(request.model_spec.name))
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        answer.metadata["signature_def"].Pack(self.model.signature_map)
        return answer


def serve_grpc(model):
    """Starts a server; returns it and its address."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    services = Services(model)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(services, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(services, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    return server, f"localhost:{port}"


def plain(value):
    """The bytes that a JSON value stands for, if it has any."""
    if isinstance(value, dict):
        return base64.b64decode(value["b64"], validate=True)
    return [plain(item) for item in value] if isinstance(value, list) else value


def serve_rest(model):
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, ask):
            try:
                status, body = 200, ask()
            except Refusal as refusal:
                code, text = refusal.args
                status, body = HTTP[code], {"error": text}
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            name, _, rest = self.path.removeprefix("/v1/models/").partition("/")

            def ask():
                model.check(name)
                if rest != "metadata":
                    return json_format.MessageToDict(
                        model.status(), preserving_proto_field_name=True
                    )
                found = json_format.MessageToDict(
                    model.signature_map, preserving_proto_field_name=True
                )
                return {"metadata": {"signature_def": found}}

            self.answer(ask)

        def do_POST(self):
            name, _, verb = self.path.removeprefix("/v1/models/").partition(":")
            assert verb == "predict"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def ask():
                expected = model.signature_map.signature_def[body["signature_name"]].inputs
                inputs = {
                    key: tf.constant(plain(value), expected[key].dtype)
                    for key, value in body["inputs"].items()
                }
                found = model.predict(name, body["signature_name"], inputs)
                outputs = {
                    key: value.numpy().astype(str if value.dtype == tf.string else None).tolist()
                    for key, value in found.items()
                }
                # As the server does it: a single output comes without its name.
                return {"outputs": outputs if len(outputs) > 1 else outputs.popitem()[1]}

            self.answer(ask)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://localhost:{server.server_port}"
