"""Serves an exported classifier with TF Serving.

    python -m export.serve --model_dir=models/digits

Writes the server's configuration to <model_dir>/serving/ (the server looks at numbers only, so it
does not mind) and starts tensorflow_model_server if it is on PATH. If it is not, prints the docker
command that does the same.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import string
import sys

from absl import flags

from export import savedmodel, warmup
from rat_tf import errors, files
from rat_tf.config import cli

BINARY = "tensorflow_model_server"
IMAGE = "tensorflow/serving:2.15.1"
NAME = "model"  # the model's at the server, by default; TF Serving's image has the same
TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serving")


def main(
    model_dir: str,
    name: str = NAME,
    port: int = 8500,
    rest_port: int = 8501,
    start: bool = True,
) -> None:
    native, docker = configure(model_dir, name, port, rest_port)
    print(f"configuration in {os.path.join(model_dir, 'serving')}; the server's command:")
    print(f"  {shlex.join(native)}")
    if not start:
        print(f"with docker:\n  {shlex.join(docker)}")
    elif shutil.which(BINARY):
        sys.stdout.flush()
        os.execvp(BINARY, native)  # signals, and the exit status, are the server's from here on
    else:
        print(f"{BINARY} is not on PATH. With docker:\n  {shlex.join(docker)}")


def configure(model_dir: str, name: str, port: int, rest_port: int) -> tuple[list[str], list[str]]:
    """Writes the configuration; returns the commands that start the server, native and docker.

    In a container the model has the path that it has outside, so that one configuration fits both.
    """
    if not savedmodel.versions(model_dir):
        raise errors.UserError(
            f"--model_dir: expected a folder with numbered versions, as export.savedmodel writes "
            f"it, but {model_dir} has none"
        )
    base_path = os.path.abspath(model_dir)
    folder = os.path.join(base_path, "serving")
    arguments = [
        f"--port={port}",
        f"--rest_api_port={rest_port}",
        f"--model_config_file={folder}/models.config",
        "--enable_batching",
        f"--batching_parameters_file={folder}/batching_parameters.txt",
        f"--monitoring_config_file={folder}/monitoring.config",
    ]
    values = {
        "name": name,
        "base_path": base_path,
        "folder": folder,
        "image": IMAGE,
        "port": port,
        "rest_port": rest_port,
        "arguments": json.dumps(arguments),  # which is YAML, too
        "threads": os.cpu_count(),
        "max_batch_size": max(warmup.BATCH_SIZES),
        "allowed_batch_sizes": "\n".join(f"allowed_batch_sizes: {n}" for n in warmup.BATCH_SIZES),
    }
    os.makedirs(folder, exist_ok=True)
    for template in sorted(os.listdir(TEMPLATES)):
        with open(os.path.join(TEMPLATES, template)) as file:
            text = string.Template(file.read()).substitute(values)
        files.write(os.path.join(folder, template), text)
    native = [BINARY, *arguments]
    mount = f"type=bind,source={base_path},target={base_path},readonly"
    ports = [f"--publish={number}:{number}" for number in (port, rest_port)]
    docker = ["docker", "run", "--rm", "--user=65534:65534", *ports, f"--mount={mount}"]
    return native, [*docker, IMAGE, *arguments]


if __name__ == "__main__":
    flags.DEFINE_string("model_dir", None, "Folder with the versions of a model.", required=True)
    flags.DEFINE_string("name", NAME, "Under which clients ask for it.")
    flags.DEFINE_integer("port", 8500, "Port of gRPC.", 1, 65535)
    flags.DEFINE_integer("rest_port", 8501, "Port of REST and of the metrics.", 1, 65535)
    flags.DEFINE_boolean("start", True, "Start the server; --nostart only writes and prints.")
    cli.command(lambda f: main(f.model_dir, f.name, f.port, f.rest_port, f.start))
