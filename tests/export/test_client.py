"""export.client against loopback servers that hold a real exported model."""

import os
import shutil
import socket
import subprocess
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from export import answers, client, serve, transport, warmup
from rat_tf import errors
from rat_tf.data import headers
from tests import runs
from tests.data import hostile, pictures
from tests.export import loopback

IMAGES = np.random.default_rng(1).integers(256, size=(5, 8, 8, 1), dtype=np.uint8)


@pytest.fixture(scope="module")
def served(model_dir):
    """The model and the addresses of both interfaces."""
    model = loopback.Model(str(model_dir / "1"), "digits")
    grpc_server, grpc_address = loopback.serve_grpc(model)
    rest_server, rest_address = loopback.serve_rest(model)
    yield model, {"grpc": grpc_address, "rest": rest_address}
    grpc_server.stop(None)
    rest_server.shutdown()


@pytest.fixture(params=["grpc", "rest"])
def server(served, request, monkeypatch):
    """(model, address) of one interface, with nothing yet asked of it; waits take no time."""
    model, addresses = served
    model.trouble, model.batches = [], []
    monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
    return model, addresses[request.param]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for i, data in enumerate(warmup.encode(IMAGES)):
        (folder / f"{i}.png").write_bytes(data)
    return [str(folder / f"{i}.png") for i in range(len(IMAGES))]


def test_a_table_of_the_most_probable_classes(server, files, capsys):
    model, address = server
    client.main(files, address, "digits", top=2, batch_size=2)
    lines = capsys.readouterr().out.splitlines()
    assert model.batches[:3] == [2, 2, 1]
    expected = model.signatures["serving_default"](tf.constant(IMAGES))["probabilities"].numpy()
    for name, row, line in zip(files, expected, lines):
        first, second = np.argsort(-row)[:2]
        assert line.split() == [
            name, str(first), f"{row[first]:.1%}", str(second), f"{row[second]:.1%}",
        ]  # fmt: skip
    assert len(lines) == len(files)


def test_a_turned_photo_and_a_webp_are_classified_as_in_training(server, tmp_path, capsys):
    upright = pictures.smooth(8, 8, 1, seed=3)
    upright = np.asarray(Image.fromarray(upright[..., 0]).convert("RGB"))
    for name, options in (("turned.png", {"orientation": 6}), ("photo.webp", {"lossless": True})):
        kind = {"png": "PNG", "webp": "WEBP"}[name.partition(".")[2]]
        (tmp_path / name).write_bytes(pictures.file(Image.fromarray(upright), kind, **options))
    model, address = server
    client.main([str(tmp_path / "turned.png"), str(tmp_path / "photo.webp")], address, "digits")
    grey = np.round(upright.astype(float) @ [[0.2989], [0.587], [0.114]]).astype(np.uint8)
    row = model.signatures["serving_default"](tf.constant(grey[np.newaxis]))["probabilities"][0]
    best = f"{int(np.argmax(row))} {np.max(row):6.1%}"
    assert [best in line for line in capsys.readouterr().out.splitlines()] == [True, True]
    (tmp_path / "half.webp").write_bytes((tmp_path / "photo.webp").read_bytes()[:40])
    with pytest.raises(errors.UserError, match=r"half\.webp: expected an image, found a broken"):
        client.main([str(tmp_path / "half.webp")], address, "digits")


def test_status_and_signatures(server, capsys):
    client.main([], server[1], "digits")
    out = capsys.readouterr().out
    assert "version 1: AVAILABLE" in out
    assert "serving_bytes: image_bytes -> classes, labels, logits, probabilities" in out
    assert "serving_default: images -> " in out


def test_a_broken_file_is_named(server, files, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not an image")
    with pytest.raises(
        errors.UserError, match="broken.png is not a whole PNG, JPEG, BMP or GIF image$"
    ):
        client.main([*files, str(broken)], server[1], "digits")


def test_a_file_of_too_many_pixels_is_named_with_the_limit(server, files, tmp_path):
    large = tmp_path / "large.png"
    large.write_bytes(hostile.png(10_000, 10_000))
    text = f"large.png has 100000000 pixels .10000 x 10000.*at most {headers.LIMIT}$"
    with pytest.raises(errors.UserError, match=text):
        client.main([*files, str(large)], server[1], "digits")


def test_what_no_signature_takes_is_refused_and_the_server_lives(server):
    connection = transport.connect(server[1], "digits", 0, 10.0)
    for signature, inputs in (
        ("class_names", {"classes": np.array([10])}),
        ("class_names", {"classes": np.array([-1])}),
        ("class_names", {"classes": np.array([[1]])}),
        ("serving_default", {"images": IMAGES[0]}),
        ("serving_default", {"images": IMAGES[0, 0, 0, 0]}),
        ("serving_default", {"images": IMAGES[:, :4]}),
    ):
        with pytest.raises(answers.ServerError, match="refused the request for 'digits'"):
            connection.predict(signature, inputs)
    assert connection.predict("class_names", {"classes": np.array([9])}).popitem()[1] == ["9"]
    for signature, name, array in (
        ("serving_default", "images", IMAGES),
        ("serving_bytes", "image_bytes", warmup.encode(IMAGES)),
    ):
        assert connection.predict(signature, {name: array})["probabilities"].shape == (5, 10)


def test_another_clients_broken_file_is_not_ours(server, files, capsys):
    """A server that batches fails all the requests of a batch, with a position in the batch."""
    text = "assertion failed: [image_bytes[1] of 12345 bytes is not a whole PNG]"
    server[0].trouble = [loopback.Refusal(grpc.StatusCode.INVALID_ARGUMENT, text)]
    client.main(files, server[1], "digits")
    captured = capsys.readouterr()
    assert "another client's image" in captured.err
    assert len(captured.out.splitlines()) == len(files)


def test_what_passes_is_tried_again(server, files, capsys):
    busy = loopback.Refusal(grpc.StatusCode.UNAVAILABLE, "Servable is loading")
    server[0].trouble = [busy, busy]
    client.main(files, server[1], "digits")
    captured = capsys.readouterr()
    assert "retrying in 0.5 s" in captured.err and "retrying in 1 s" in captured.err
    assert len(captured.out.splitlines()) == len(files)
    server[0].trouble = [busy] * 3
    with pytest.raises(errors.UserError, match="Servable is loading"):
        client.main(files, server[1], "digits", retries=2)
    assert not server[0].trouble


def test_what_does_not_pass_is_not(server, files):
    with pytest.raises(errors.UserError, match="no such --model or --version.*other"):
        client.main(files, server[1], "other")


def test_a_late_answer(served, files):
    model, addresses = served
    for address in addresses.values():
        model.trouble = [1.0]
        with pytest.raises(errors.UserError, match="did not answer within 0.2 s"):
            client.main(files, address, "digits", timeout=0.2)
        time.sleep(1.0)  # until the server is done with it


def test_wrong_addresses_and_files(files, tmp_path):
    with pytest.raises(errors.UserError, match="--server: expected host:port"):
        transport.connect("ftp://here", "digits", 0, 1.0)
    with pytest.raises(errors.UserError, match="missing.png: cannot be read: No such file"):
        client.main([str(tmp_path / "missing.png")], "localhost:1", "digits")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_without_a_server_there_is_one_message(files, scheme):
    with pytest.raises(errors.UserError, match="^cannot reach .* is the server running\\?$"):
        client.main(files, f"{scheme}localhost:{_free_port()}", "digits", retries=0)


def test_the_command_ends_with_one_message(files):
    arguments = [f"--server=localhost:{_free_port()}", "--model=digits", "--retries=0"]
    status, out, err = runs.command("export.client", *arguments, *files)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("error: cannot reach") and line.endswith("is the server running?")


@pytest.mark.skipif(not shutil.which(serve.BINARY), reason=f"{serve.BINARY} is not on PATH")
def test_the_real_server(model_dir, files, capsys, tmp_path):
    shutil.copytree(model_dir, tmp_path / "digits")
    ports = _free_port(), _free_port()
    command, _ = serve.configure(str(tmp_path / "digits"), "digits", *ports)
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
    try:
        tables = []
        for address in (f"localhost:{ports[0]}", f"http://localhost:{ports[1]}"):
            client.main(files, address, "digits", retries=8)
            tables.append(capsys.readouterr().out)
            client.main([], address, "digits")
            assert "AVAILABLE" in capsys.readouterr().out
        assert tables[0] == tables[1] and len(tables[0].splitlines()) == len(files)
    finally:
        process.terminate()
        process.wait()
