"""Connections to TF Serving, over gRPC or REST, with the same methods and errors."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import urllib.error
import urllib.parse
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

from export import answers
from rat_tf import errors

MAX_ANSWER = 2**28  # bytes; 64 images of 100,000 classes have half of it as JSON


def connect(server: str, model: str, version: int, timeout: float) -> Rest | Grpc:
    """The connection of --server: REST for a URL, gRPC for host:port."""
    rest = server.startswith(("http://", "https://"))
    if not (_is_url(server) if rest else _is_target(server)):
        raise errors.UserError(
            f"--server: expected host:port for gRPC or http://host:port for REST, got {server!r}"
        )
    return (Rest if rest else Grpc)(server.rstrip("/"), model, version, timeout)


def _is_url(server: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(server)
        return bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s?#]", server)
    except ValueError:  # a port that is none
        return False


def _is_target(server: str) -> bool:
    """host:port, or the path of a socket."""
    if server.startswith("unix:"):
        return True
    host, _, port = server.rpartition(":")
    return bool(re.fullmatch(r"[\w.-]+|\[[\da-fA-F:.%]+\]", host)) and _is_port(port)


def _is_port(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,5}", text)) and 0 < int(text) < 2**16


class Rest:
    """The JSON API; byte strings are sent as {"b64": standard base64}."""

    def __init__(self, server: str, model: str, version: int, timeout: float):
        self.server, self._model, self._timeout = server, model, timeout
        self._url = f"{server}/v1/models/{urllib.parse.quote(model, safe='')}"
        self._url += f"/versions/{version}" if version else ""
        self._opener = urllib.request.build_opener(_NoRedirects)

    def predict(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        body = {
            "signature_name": signature,
            "inputs": {name: _jsonable(value) for name, value in inputs.items()},
        }
        answer = self._ask(f"{self._url}:predict", body)
        with answers.understood(self.server):
            outputs = answer["outputs"]
            if not isinstance(outputs, dict):  # a single output comes without its name
                return {"": np.array(outputs)}
            return {name: np.array(value) for name, value in outputs.items()}

    def status(self) -> list[dict]:
        answer = self._ask(self._url)
        with answers.understood(self.server):
            return answer["model_version_status"]

    def metadata(self) -> dict:
        answer = self._ask(f"{self._url}/metadata")
        with answers.understood(self.server):
            return answer["metadata"]["signature_def"]["signature_def"]

    def _ask(self, url: str, body: dict | None = None) -> dict:
        data = json.dumps(body).encode() if body else None
        try:
            return answers.within(self._timeout, lambda: json.loads(self._read(url, data)))
        except urllib.error.HTTPError as error:
            raise self._refused(error.code, error.reason) from None
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise answers.ServerError(answers.timed_out(self.server, self._timeout)) from None
            raise answers.ServerError(
                f"cannot reach {self.server}: {reason}; is the server running?", transient=True
            ) from None
        except (ValueError, RecursionError, http.client.HTTPException) as error:
            raise answers.unlike_serving(self.server, error) from None

    def _read(self, url: str, data: bytes | None) -> bytes:
        """The body of an answer; that of an error becomes the reason of an HTTPError."""
        try:
            with self._opener.open(url, data, self._timeout) as answer:
                found = answer.read(MAX_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with contextlib.suppress(OSError, http.client.HTTPException):
                error.msg = error.read(MAX_ANSWER).decode(errors="replace") or error.reason
            raise
        if len(found) > MAX_ANSWER:
            raise ValueError(f"an answer of more than {MAX_ANSWER:,} bytes")
        return found

    def _refused(self, code: int, text: str) -> answers.ServerError:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            text = str(json.loads(text)["error"])
        text = text[: answers.MAX_TEXT]
        if 300 <= code < 400:
            text = f"it redirects to another address ({text})"
        if code == 404:
            text = f"no such --model or --version ({text})"
        return answers.ServerError(
            f"{self.server} refused the request for {self._model!r}: {text}",
            transient=code in (429, 503),
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """TF Serving redirects nobody, and images should go nowhere else than to --server."""

    def redirect_request(self, request, file, code, message, headers, url):
        return None


class Grpc:
    """The protocol-buffer API; faster, as numbers are sent in binary."""

    #: Transient errors: the server is starting, or its queue is full.
    TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)

    def __init__(self, server: str, model: str, version: int, timeout: float):
        self.server, self._model, self._version = server, model, version
        self._timeout = timeout
        limits = {"grpc.max_send_message_length": -1, "grpc.max_receive_message_length": MAX_ANSWER}
        channel = grpc.insecure_channel(server, list(limits.items()))
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)

    def predict(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        request = predict_pb2.PredictRequest()
        request.model_spec.signature_name = signature
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        answer = self._ask(self._prediction.Predict, request)
        with answers.understood(self.server):
            outputs = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
            return {
                name: np.array([t.decode() for t in value]) if value.dtype == object else value
                for name, value in outputs.items()
            }

    def status(self) -> list[dict]:
        request = get_model_status_pb2.GetModelStatusRequest()
        answer = self._ask(self._models.GetModelStatus, request)
        with answers.understood(self.server):
            return _plain(answer)["model_version_status"]

    def metadata(self) -> dict:
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        answer = self._ask(self._prediction.GetModelMetadata, request)
        found = get_model_metadata_pb2.SignatureDefMap()
        with answers.understood(self.server):
            answer.metadata["signature_def"].Unpack(found)
            return _plain(found)["signature_def"]

    def _ask(self, method, request):
        request.model_spec.name = self._model
        if self._version:
            request.model_spec.version.value = self._version
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code, text = error.code(), (error.details() or "")[: answers.MAX_TEXT]
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise answers.ServerError(answers.timed_out(self.server, self._timeout))
        if code == grpc.StatusCode.UNAVAILABLE:
            text = f"cannot reach {self.server}: {text}; is the server running?"
        else:
            if code == grpc.StatusCode.NOT_FOUND:
                text = f"no such --model or --version ({text})"
            text = f"{self.server} refused the request for {self._model!r}: {text}"
        raise answers.ServerError(text, transient=code in self.TRANSIENT)


def _jsonable(value: np.ndarray) -> list:
    if value.dtype == object:
        return [{"b64": base64.b64encode(item).decode()} for item in value]
    return value.tolist()


def _plain(message) -> dict:
    """A message as a dictionary with the names of the JSON API."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
