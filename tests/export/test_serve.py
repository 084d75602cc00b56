"""export.serve: the configuration it writes, and which server it starts."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from export import serve, warmup
from rat_tf import errors


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "models" / "digits"
    (folder / "1").mkdir(parents=True)
    return folder


def test_the_configuration_fits_the_model(model):
    native, docker = serve.configure(str(model), "pets", 9000, 9001)
    folder = model / "serving"
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((folder / "models.config").read_text(), config)
    (entry,) = config.model_config_list.config
    assert (entry.name, entry.base_path) == ("pets", str(model))
    batching = (folder / "batching_parameters.txt").read_text()
    allowed = [int(number) for number in re.findall(r"allowed_batch_sizes: (\d+)", batching)]
    assert tuple(allowed) == warmup.BATCH_SIZES == tuple(sorted(allowed))
    assert f"max_batch_size {{ value: {allowed[-1]} }}" in batching
    assert "prometheus_config" in (folder / "monitoring.config").read_text()
    # Every file that the command names is there, and docker runs the same command.
    named = [part.partition("=")[2] for part in native if "_file=" in part]
    assert len(named) == 3 and all(os.path.exists(name) for name in named)
    assert docker[-len(native) + 1 :] == native[1:]
    compose = (folder / "docker-compose.yml").read_text()
    assert json.loads(re.search(r"command: (\[.*\])", compose)[1]) == native[1:]
    assert "$" not in compose + batching


def test_without_the_server_the_docker_command_is_printed(model, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    serve.main(str(model))
    *_, command = capsys.readouterr().out.splitlines()
    assert shlex.split(command)[:3] == ["docker", "run", "--rm"] and serve.IMAGE in command


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
    native, _ = serve.configure(str(model), serve.NAME, 9000, 8501)
    assert process.stdout.splitlines()[-len(native) :] == ["started", *native[1:]]


def test_a_folder_without_versions_is_refused(tmp_path):
    with pytest.raises(errors.UserError, match="--model_dir: expected a folder with numbered"):
        serve.main(str(tmp_path))
