"""Every command answers --help and a wrong flag before TensorFlow is imported."""

import json
import subprocess
import sys

import pytest

#: A wrong value, or a flag that there is not, for each command.
WRONG = {
    "rat_tf.train": "--labels=-1",
    "rat_tf.evaluate": "--images=0 --run_dir=x",
    "rat_tf.predict": "--stability_draws=-1 --run_dir=x --output=y",
    "rat_tf.label_next": "--count=0 --run_dir=x --output=y",
    "rat_tf.tune": "--max_trials=-1 --output=x",
    "rat_tf.sweep": "--labels=-1 --seeds=2",
    "rat_tf.report": "--papr=svhn",
    "rat_tf.moons": "--iterations=0",
    "rat_tf.configs": "--chek",
    "rat_tf.data": "--labels=-1",
    "export.savedmodel": "--weights=worst --run_dir=x --output=y",
    "export.serve": "--port=0 --model_dir=x",
    "export.client": "--top=0",
}

#: All commands in one process, as `python -m` runs them.
COMMANDS = """
import contextlib, io, json, runpy, sys
answers = []
for module, flags in json.loads(sys.argv[1]):
    sys.argv[1:] = flags.split()
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            status = ended.code
    imported = sorted({"tensorflow", "tensorflow_datasets", "matplotlib"} & set(sys.modules))
    answers.append([status, out.getvalue(), err.getvalue(), imported])
json.dump(answers, sys.stdout)
"""


@pytest.mark.usefixtures("in_the_projects_folder")
def test_help_and_wrong_flags_are_answered_without_tensorflow():
    lines = [(module, flags) for module in WRONG for flags in ("--help", WRONG[module])]
    command = [sys.executable, "-c", COMMANDS, json.dumps(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for (module, flags), answer in zip(lines, json.loads(done.stdout), strict=True):
        status, out, err, imported = answer
        assert imported == [], (module, flags)
        if flags == "--help":
            assert (status, err) == (0, ""), (module, answer)
            assert out.splitlines()[0].endswith(".") and "  --" in out, (module, out)
        else:
            assert (status, out) == (2, ""), (module, answer)
            name = flags.lstrip("-").partition("=")[0]
            assert err.startswith("error: ") and name in err, (module, err)
