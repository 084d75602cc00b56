"""Serves an exported classifier with TF Serving.

    python -m export.serve --model_dir=models/digits

Writes the server's configuration to <model_dir>/serving/ (the server ignores names that are not
numbers) and starts tensorflow_model_server if it is on PATH. If it is not, prints the equivalent
docker command and exits with status 69: nothing was started. --nostart exits with 0.

Docker publishes the ports on 127.0.0.1, or on --host. tensorflow_model_server itself always listens
on all interfaces.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import ipaddress
import json
import os
import re
import shlex
import shutil
import string
import sys

from export import protocol, versions
from rat_tf import errors, fields
from rat_tf.config import cli
from rat_tf.storage import files, records

BINARY = "tensorflow_model_server"
REPOSITORY = "tensorflow/serving"
FIRST_SERVER = "2.15.1"  # of models that were exported before they named theirs
HOST = "127.0.0.1"
TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serving")


PORT = fields.expect(lambda value: 1 <= value <= 65535, "a port in [1, 65535]")


@dataclasses.dataclass(frozen=True)
class Flags:
    model_dir: str = fields.path(None, "Folder with the versions of a model.")
    name: str = fields.flag(protocol.NAME, "Name of the model for clients.")
    port: int = fields.flag(8500, "gRPC port.", PORT)
    rest_port: int = fields.flag(8501, "Port of REST and metrics.", PORT)
    start: bool = fields.flag(True, "Start the server; --nostart only writes the configuration.")
    host: str = fields.flag(HOST, "Address on which docker publishes the ports.")


def main(
    model_dir: str,
    name: str = protocol.NAME,
    port: int = 8500,
    rest_port: int = 8501,
    start: bool = True,
    host: str = HOST,
) -> None:
    native, docker = configure(model_dir, name, port, rest_port, host)
    print(f"configuration in {os.path.join(model_dir, 'serving')}; the server's command:")
    print(f"  {shlex.join(native)}")
    if not start:
        print(f"with docker:\n  {shlex.join(docker)}")
    elif shutil.which(BINARY):
        print(f"note: {BINARY} listens on all interfaces, not on {host} alone", file=sys.stderr)
        sys.stdout.flush()
        os.execvp(BINARY, native)  # the server replaces this process
    else:
        print(f"with docker:\n  {shlex.join(docker)}")
        print(f"error: nothing was started: {BINARY} is not on PATH", file=sys.stderr)
        sys.exit(os.EX_UNAVAILABLE)


def configure(
    model_dir: str, name: str, port: int, rest_port: int, host: str = HOST
) -> tuple[list[str], list[str]]:
    """Writes the configuration; returns the commands that start the server, native and docker.

    The model has the same path inside a container as outside, so that one configuration fits both.
    """
    address = check(model_dir, name, port, rest_port, host)
    base_path = os.path.abspath(model_dir)
    folder = os.path.join(base_path, "serving")
    docker_image = image(model_dir)
    arguments = [
        f"--port={port}",
        f"--rest_api_port={rest_port}",
        f"--model_config_file={folder}/models.config",
        "--enable_batching",
        f"--batching_parameters_file={folder}/batching_parameters.txt",
        f"--monitoring_config_file={folder}/monitoring.config",
    ]
    ports = [f"{address}:{number}:{number}" for number in (port, rest_port)]
    # A JSON string is also valid in YAML and in protocol buffers' text format.
    values = {
        "name": quoted(name),
        "base_path": quoted(base_path),
        "image": quoted(docker_image),
        # Compose would substitute variables after a $.
        "compose_path": quoted(base_path).replace("$", "$$"),
        "compose_ports": quoted(ports),
        "compose_arguments": quoted(arguments).replace("$", "$$"),
        "compose_file": shlex.quote(f"{folder}/docker-compose.yml"),
        "threads": os.cpu_count(),
        "max_batch_size": max(protocol.BATCH_SIZES),
        "allowed_batch_sizes": "\n".join(f"allowed_batch_sizes: {n}" for n in protocol.BATCH_SIZES),
    }
    os.makedirs(folder, exist_ok=True)
    for template in sorted(os.listdir(TEMPLATES)):
        with open(os.path.join(TEMPLATES, template), encoding="utf-8") as file:
            text = string.Template(file.read()).substitute(values)
        files.write(os.path.join(folder, template), text)
    native = [BINARY, *arguments]
    mount = io.StringIO()  # docker reads it as CSV
    fields = ["type=bind", f"source={base_path}", f"target={base_path}", "readonly"]
    csv.writer(mount, lineterminator="").writerow(fields)
    docker = ["docker", "run", "--rm", "--user=65534:65534"]
    docker += [*(f"--publish={item}" for item in ports), f"--mount={mount.getvalue()}"]
    return native, [*docker, docker_image, *arguments]


def image(model_dir: str) -> str:
    """The docker image of the server that fits the newest version, which names it."""
    newest = str(max(versions.versions(model_dir)))
    path = os.path.join(model_dir, newest, "assets", protocol.SERVER_FILE)
    if not os.path.exists(path):
        return f"{REPOSITORY}:{FIRST_SERVER}"
    tag = records.text(path).strip()
    if not re.fullmatch(r"\d+\.\d+\.\d+(-\w+)?", tag):
        raise errors.UserError(f"{path}: expected a version of TF Serving, got {tag!r}")
    return f"{REPOSITORY}:{tag}"


def check(model_dir: str, name: str, port: int, rest_port: int, host: str) -> str:
    """Checks everything that the server needs to start; returns the address in docker's form."""
    found = versions.versions(model_dir)
    if not found:
        raise errors.UserError(
            f"--model_dir: expected a folder with numbered versions, as export.savedmodel writes "
            f"it, but {model_dir} has none"
        )
    newest = os.path.join(model_dir, str(found[-1]))
    if not os.path.isfile(os.path.join(newest, "saved_model.pb")):
        raise errors.UserError(
            f"--model_dir: expected a SavedModel in the newest version, but {newest} has no "
            "saved_model.pb"
        )
    if not os.path.abspath(model_dir).isprintable():
        raise errors.UserError(
            f"--model_dir: expected a path of printable characters, got {model_dir!r}"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise errors.UserError(
            "--name: expected letters, digits, '.', '_' and '-', the first a letter or digit, "
            f"got {name!r}"
        )
    for flag, value in (("port", port), ("rest_port", rest_port)):
        if not 1 <= value <= 65535:
            raise errors.UserError(f"--{flag}: must be in [1, 65535], got {value}")
    if port == rest_port:
        raise errors.UserError(f"--rest_port: must differ from --port, both are {port}")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise errors.UserError(
            f"--host: expected an IP address, such as 127.0.0.1 or 0.0.0.0, got {host!r}"
        ) from None
    return f"[{address}]" if address.version == 6 else str(address)


def quoted(value) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    cli.command(lambda f: main(f.model_dir, f.name, f.port, f.rest_port, f.start, f.host), Flags)
