"""Connections to TF Serving, over gRPC or REST, with the same methods and errors."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from rat_tf import errors


class ServerError(errors.UserError):
    """An error of the server; `transient` if a retry may succeed."""

    def __init__(self, message: str, transient: bool = False):
        super().__init__(message)
        self.transient = transient


def connect(server: str, model: str, version: int, timeout: float) -> Rest | Grpc:
    """The connection of --server: REST for a URL, gRPC for host:port."""
    if server.startswith(("http://", "https://")):
        return Rest(server.rstrip("/"), model, version, timeout)
    if "://" in server or ":" not in server:
        raise errors.UserError(
            f"--server: expected host:port for gRPC or http://host:port for REST, got {server!r}"
        )
    return Grpc(server, model, version, timeout)


class Rest:
    """The JSON API; byte strings are sent as {"b64": standard base64}."""

    def __init__(self, server: str, model: str, version: int, timeout: float):
        self._server, self._model, self._timeout = server, model, timeout
        self._url = f"{server}/v1/models/{model}" + (f"/versions/{version}" if version else "")

    def predict(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        body = {
            "signature_name": signature,
            "inputs": {name: _jsonable(value) for name, value in inputs.items()},
        }
        outputs = self._ask(f"{self._url}:predict", body)["outputs"]
        if not isinstance(outputs, dict):  # a single output comes without its name
            return {"": np.array(outputs)}
        return {name: np.array(value) for name, value in outputs.items()}

    def status(self) -> list[dict]:
        return self._ask(self._url)["model_version_status"]

    def metadata(self) -> dict:
        return self._ask(f"{self._url}/metadata")["metadata"]["signature_def"]["signature_def"]

    def _ask(self, url: str, body: dict | None = None) -> dict:
        data = json.dumps(body).encode() if body else None
        try:
            with urllib.request.urlopen(url, data, self._timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                text = json.loads(text)["error"]
            except (ValueError, KeyError, TypeError):
                text = text or error.reason
            if error.code == 404:
                text = f"no such --model or --version ({text})"
            raise ServerError(
                f"{self._server} refused the request for {self._model!r}: {text}",
                transient=error.code in (429, 503),
            ) from None
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise ServerError(_timed_out(self._server, self._timeout)) from None
            raise ServerError(
                f"cannot reach {self._server}: {reason}; is the server running?", transient=True
            ) from None
        except ValueError:
            raise ServerError(f"{self._server} does not answer like TF Serving") from None


class Grpc:
    """The protocol-buffer API; faster, as numbers are sent in binary."""

    #: Transient errors: the server is starting, or its queue is full.
    TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)

    def __init__(self, server: str, model: str, version: int, timeout: float):
        self._server, self._model, self._version = server, model, version
        self._timeout = timeout
        unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        channel = grpc.insecure_channel(server, unlimited)
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)

    def predict(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        request = predict_pb2.PredictRequest()
        request.model_spec.signature_name = signature
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        answer = self._ask(self._prediction.Predict, request)
        outputs = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
        return {
            name: np.array([text.decode() for text in value]) if value.dtype == object else value
            for name, value in outputs.items()
        }

    def status(self) -> list[dict]:
        request = get_model_status_pb2.GetModelStatusRequest()
        answer = self._ask(self._models.GetModelStatus, request)
        return _plain(answer)["model_version_status"]

    def metadata(self) -> dict:
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        answer = self._ask(self._prediction.GetModelMetadata, request)
        found = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(found)
        return _plain(found)["signature_def"]

    def _ask(self, method, request):
        request.model_spec.name = self._model
        if self._version:
            request.model_spec.version.value = self._version
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code, text = error.code(), error.details()
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise ServerError(_timed_out(self._server, self._timeout))
        if code == grpc.StatusCode.UNAVAILABLE:
            text = f"cannot reach {self._server}: {text}; is the server running?"
        else:
            if code == grpc.StatusCode.NOT_FOUND:
                text = f"no such --model or --version ({text})"
            text = f"{self._server} refused the request for {self._model!r}: {text}"
        raise ServerError(text, transient=code in self.TRANSIENT)


def _timed_out(server: str, timeout: float) -> str:
    return f"{server} did not answer within {timeout:g} s; try a longer --timeout"


def _jsonable(value: np.ndarray) -> list:
    if value.dtype == object:
        return [{"b64": base64.b64encode(item).decode()} for item in value]
    return value.tolist()


def _plain(message) -> dict:
    """A message as a dictionary with the names of the JSON API."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
