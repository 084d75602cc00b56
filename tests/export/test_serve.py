"""export.serve: the configuration it writes, and which server it starts."""

import csv
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from export import protocol, serve, versions
from rat_tf import errors


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "models" / "digits"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "saved_model.pb").touch()
    return folder


def compose_values(model):
    """The values of docker-compose.yml, all of them written as JSON, which is YAML, too."""
    text = (model / "serving" / "docker-compose.yml").read_text()
    found = re.findall(r'^ +(\w+): (["\[].*["\]])(?:  #.*)?$', text, re.M)
    return {key: json.loads(value) for key, value in found}


def test_the_configuration_fits_the_model(model):
    native, docker = serve.configure(str(model), "pets", 9000, 9001)
    folder = model / "serving"
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((folder / "models.config").read_text(), config)
    (entry,) = config.model_config_list.config
    assert (entry.name, entry.base_path) == ("pets", str(model))
    batching = (folder / "batching_parameters.txt").read_text()
    allowed = [int(number) for number in re.findall(r"allowed_batch_sizes: (\d+)", batching)]
    assert tuple(allowed) == protocol.BATCH_SIZES == tuple(sorted(allowed))
    assert f"max_batch_size {{ value: {allowed[-1]} }}" in batching
    assert "prometheus_config" in (folder / "monitoring.config").read_text()
    # Every file that the command names is there, and docker runs the same command.
    named = [part.partition("=")[2] for part in native if "_file=" in part]
    assert len(named) == 3 and all(os.path.exists(name) for name in named)
    assert docker[-len(native) + 1 :] == native[1:]
    compose = (folder / "docker-compose.yml").read_text()
    assert json.loads(re.search(r"command: (\[.*\])", compose)[1]) == native[1:]
    assert "$" not in compose + batching


@pytest.mark.parametrize("name", ['a "b"', "a\\b", "a'b", "$HOME ${x}", "a, b", "a: #b", "größe"])
def test_any_path_can_be_served(model, name):
    """What every reader of the configuration makes of it is the path itself."""
    model = model.rename(model.parent / name)
    native, docker = serve.configure(str(model), "pets", 9000, 9001)
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((model / "serving" / "models.config").read_text(), config)
    assert config.model_config_list.config[0].base_path == str(model)
    service = compose_values(model)
    plain = [part.replace("$$", "\0") for part in service["command"]]
    assert not any("$" in part for part in plain)  # nothing left for compose to put in
    assert [part.replace("\0", "$") for part in plain] == native[1:]
    assert service["source"] == service["target"] == str(model).replace("$", "$$")
    (mount,) = [part for part in docker if part.startswith("--mount=")]
    (fields,) = csv.reader([mount.removeprefix("--mount=")])
    assert fields == ["type=bind", f"source={model}", f"target={model}", "readonly"]


@pytest.mark.parametrize(
    "host, published", [(None, "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("::1", "[::1]")]
)
def test_ports_are_published_on_this_machine_alone_unless_told(model, host, published):
    _, docker = serve.configure(str(model), "pets", 9000, 9001, *([host] if host else []))
    ports = [f"{published}:{port}:{port}" for port in (9000, 9001)]
    assert [part for part in docker if part.startswith("--publish")] == [
        f"--publish={p}" for p in ports
    ]
    assert compose_values(model)["ports"] == ports


@pytest.mark.parametrize(
    "values, message",
    [
        ({"name": ""}, "--name: expected letters"),
        ({"name": 'a"b'}, "--name: expected letters"),
        ({"name": "a/b"}, "--name: expected letters"),
        ({"name": "a\n"}, "--name: expected letters"),
        ({"port": 0}, r"--port: must be in \[1, 65535\], got 0"),
        ({"rest_port": 65536}, r"--rest_port: must be in \[1, 65535\], got 65536"),
        ({"rest_port": 8500}, "--rest_port: must differ from --port, both are 8500"),
        ({"host": "localhost"}, "--host: expected an IP address.*got 'localhost'"),
        ({"host": "1.2.3.4:5"}, "--host: expected an IP address"),
    ],
)
def test_what_the_server_would_not_start_with_is_refused(model, values, message):
    with pytest.raises(errors.UserError, match=message):
        serve.main(str(model), start=False, **values)
    assert not (model / "serving").exists()


def test_a_path_with_a_line_break_is_refused(model):
    model = model.rename(model.parent / "a\nb")
    with pytest.raises(errors.UserError, match="--model_dir: expected a path of printable"):
        serve.main(str(model), start=False)


def test_a_version_is_a_number_of_64_bits_with_a_saved_model(model):
    for name in (str(2**63), "٣", "1_0", "02", "-3"):
        (model / name).mkdir()
    assert versions.versions(str(model)) == [1]
    serve.main(str(model), start=False)
    (model / "2").mkdir()
    with pytest.raises(errors.UserError, match="digits/2 has no saved_model.pb"):
        serve.main(str(model), start=False)


def test_not_starting_is_what_was_asked_for(model):
    process = subprocess.run(
        [sys.executable, "-m", "export.serve", f"--model_dir={model}", "--nostart"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0 and "--publish=127.0.0.1:8500:8500" in process.stdout


def test_without_the_server_the_docker_command_is_printed(model, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit) as end:
        serve.main(str(model))
    assert end.value.code == 69
    captured = capsys.readouterr()
    assert captured.err == "error: nothing was started: tensorflow_model_server is not on PATH\n"
    *_, command = captured.out.splitlines()
    assert shlex.split(command)[:3] == ["docker", "run", "--rm"] and serve.image(model) in command


def test_the_image_is_that_of_the_stack_that_exported_the_newest_version(model):
    assert serve.image(model) == "tensorflow/serving:2.15.1"  # it does not say
    for version, tag in ((9, "2.15.1"), (10, "2.21.0")):
        assets = model / str(version) / "assets"
        assets.mkdir(parents=True)
        (assets.parent / "saved_model.pb").touch()
        (assets / "tf_serving.txt").write_text(f"{tag}\n")
        _, docker = serve.configure(str(model), protocol.NAME, 8500, 8501)
        assert f"tensorflow/serving:{tag}" in docker
        assert compose_values(model)["image"] == f"tensorflow/serving:{tag}"
    (assets / "tf_serving.txt").write_text("latest; rm -rf /\n")
    with pytest.raises(errors.UserError, match="tf_serving.txt: expected a version of TF Serving"):
        serve.main(str(model))


def test_the_server_on_path_is_started_with_the_configuration(model, tmp_path):
    """Something else under the server's name says what it was given."""
    binary = tmp_path / "bin" / serve.BINARY
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho started\nprintf '%s\\n' \"$@\"\nexit 7\n")
    binary.chmod(0o755)
    process = subprocess.run(
        [sys.executable, "-m", "export.serve", f"--model_dir={model}", "--port=9000"],
        env={**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 7, process.stderr
    native, _ = serve.configure(str(model), protocol.NAME, 9000, 8501)
    assert process.stdout.splitlines()[-len(native) :] == ["started", *native[1:]]


def test_a_folder_without_versions_is_refused(tmp_path):
    with pytest.raises(errors.UserError, match="--model_dir: expected a folder with numbered"):
        serve.main(str(tmp_path))
