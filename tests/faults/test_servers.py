"""export.client against servers that answer anything: one message, within one deadline."""

import contextlib
import json
import re
import socket
import threading
import time

import numpy as np
import pytest

from export import answers, client, transport
from rat_tf import errors

DEADLINE = 0.3
OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
UNLIKE = "does not answer like TF Serving"
LATE = "did not answer within 0.3 s"


def said(body):
    return OK + json.dumps(body).encode()


def outputs(probabilities):
    return said({"outputs": {"probabilities": probabilities, "classes": [1]}})


#: What a server sends to whoever asks for the class of one image, and what the message must say.
ANSWERS = {
    "nothing": (b"", "cannot reach .*is the server running"),
    "garbage": (b"\x00\xff\xfe garbage \r\n\r\n", UNLIKE),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", UNLIKE),
    "a strange status": (b"HTTP/1.0 x OK\r\n\r\n{}", UNLIKE),
    "an endless header": (b"HTTP/1.0 200 OK\r\nX: " + b"a" * 100_000, UNLIKE),
    "a cut body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", UNLIKE),
    "a cut chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", UNLIKE),
    "no JSON": (OK + b"<html>hello</html>", UNLIKE),
    "no text": (OK + b"\xff\xfe\xfd", UNLIKE),
    "deep JSON": (OK + b"[" * 100_000, UNLIKE),
    "a long number": (OK + b'{"outputs": ' + b"9" * 5000 + b"}", UNLIKE),
    "JSON of another kind": (said([1, 2]), UNLIKE),
    "null": (said(None), UNLIKE),
    "no outputs": (said({"predictions": [[0.1, 0.9]]}), f"{UNLIKE}.*outputs"),
    "other outputs": (said({"outputs": {"logits": [[1.0]]}}), f"{UNLIKE}.*probabilities"),
    "one output": (said({"outputs": [[0.1, 0.9]]}), f"{UNLIKE}.*probabilities"),
    "text for numbers": (outputs([["a", "b"]]), UNLIKE),
    "no image": (outputs([]), f"{UNLIKE}.*1 images"),
    "two images": (outputs([[0.1], [0.2]]), f"{UNLIKE}.*1 images"),
    "rows that differ": (outputs([[0.1, 0.9], [1.0]]), UNLIKE),
    "no numbers": (OK + b'{"outputs": {"probabilities": [[NaN, 1.0]]}}', UNLIKE),
    "objects": (outputs([[{}, {}]]), UNLIKE),
    "names that are missing": (outputs([[0.1, 0.9]]), f"{UNLIKE}.*too many values|{UNLIKE}"),
    "a redirect": (b"HTTP/1.0 302 Found\r\nLocation: http://elsewhere/\r\n\r\n", "redirects"),
    "an error": (b'HTTP/1.0 400 Bad\r\n\r\n{"error": "too \\u001b[31mred"}', "too \x1b.31mred"),
    "an error without JSON": (b"HTTP/1.0 500 Oops\r\n\r\nbroken", "refused the request.*broken"),
    "an error of another kind": (b'HTTP/1.0 500 Oops\r\n\r\n["a"]', "refused the request"),
    "a cut error": (b"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n{", "refused the request"),
    "no such model": (b'HTTP/1.0 404 N\r\n\r\n{"error": "none"}', "no such --model or --version"),
}


def read(connection):
    """A whole request: if a part were unread, closing would reset the connection."""
    found = connection.recv(1 << 16)
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(body) < int(length[1]):
        body += connection.recv(1 << 16)


@contextlib.contextmanager
def server(*sent, pause=0.0):
    """A server that reads a request and sends these bytes; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    read(connection)
                    for some in sent:
                        connection.sendall(some)
                        time.sleep(pause)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def ask(address, tmp_path, timeout=5.0):
    """The message of the client, and the seconds it took."""
    image = tmp_path / "image.png"
    image.write_bytes(b"the server decides")
    started = time.monotonic()
    with pytest.raises(errors.UserError) as caught:
        client.main([str(image)], address, "model", timeout=timeout, retries=0)
    return caught, time.monotonic() - started


@pytest.mark.parametrize("name", ANSWERS)
def test_any_answer_is_one_message(name, tmp_path):
    sent, words = ANSWERS[name]
    with server(sent) as address:
        caught, _ = ask(f"http://{address}", tmp_path)
        caught.match(words)
        if "200 OK" in str(sent):  # the same for --status
            with pytest.raises(errors.UserError, match=UNLIKE):
                client.main([], f"http://{address}", "model", retries=0)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.0 200 OK\r\n", OK, b"HTTP/1.0 400 Bad\r\n\r\n"])
def test_a_server_that_drips_has_one_deadline(first, tmp_path):
    drops = [first, *([b" "] * 50)]
    with server(*drops, pause=0.1) as address:
        caught, seconds = ask(f"http://{address}", tmp_path, timeout=DEADLINE)
    caught.match(LATE)
    assert seconds < DEADLINE + 0.5


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\4\4\0\0\0\0"])
def test_grpc_to_a_server_of_another_protocol(sent, tmp_path):
    with server(sent) as address:
        caught, seconds = ask(address, tmp_path, timeout=DEADLINE)
    caught.match("cannot reach|did not answer|refused")
    assert seconds < DEADLINE + 1


def test_an_answer_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "MAX_ANSWER", 1000)
    with server(OK, b" " * 5000) as address:
        caught, _ = ask(f"http://{address}", tmp_path)
    caught.match(f"{UNLIKE}.*more than 1,000 bytes")


@pytest.mark.parametrize("answer", ["a", "names", "numbers"])
def test_names_of_classes_that_do_not_fit(answer):
    class Connection:
        server = "here"

        def predict(self, signature, inputs):
            found = {"a": [], "names": ["x"] * 3, "numbers": [[1, 2]]}[answer]
            return {"": np.array(found)}

    with pytest.raises(answers.ServerError, match=UNLIKE):
        client.class_names(Connection(), 2, 64)


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost", "localhost:", ":8500", "localhost:0", "localhost:99999", "a b:80"),
        *("http://", "http://:8501", "http://localhost:x", "http://localhost:99999", "ftp://here"),
        *("http://[::1", "http://a b", "http://here?x=1", "localhost:8500/v1"),
    ],
)
def test_wrong_addresses(address):
    with pytest.raises(errors.UserError, match="--server: expected host:port"):
        transport.connect(address, "model", 0, 1.0)


@pytest.mark.parametrize("address", ["http://h:1/prefix/", "[::1]:8500", "https://h", "unix:/x"])
def test_right_addresses(address):
    transport.connect(address, "model", 0, 1.0)
