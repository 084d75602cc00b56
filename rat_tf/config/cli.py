"""The command line: parses flags, makes the `Config`, prints `--help` and error messages.

TensorFlow is imported only after the flags have been checked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import io
import locale
import os
import re
import signal
import sys
import tempfile
import textwrap

from absl import flags

from rat_tf import errors, fields, stack
from rat_tf.config import flag_values, flagfiles, run_dirs, table
from rat_tf.storage import escapes

STOPPED = 75  # exit status of an interrupted, resumable command (EX_TEMPFAIL: try again)
GROUPS = ("Method", "Data", "Training", "Machine")
LESS_MEMORY = (
    "smaller --labeled_batch, --unlabeled_batch, --image_size or --network, and --mixed_precision, "
    "need less"
)
_OUT_OF_MEMORY = "ResourceExhaustedError"  # of tf.errors
# What the system says of a path that the user gave, and of a disk that is full.
_ABOUT_FILES = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
)
# What TensorFlow logs at every start although nothing is wrong; the last two: without GPUs.
_STARTUP_NOISE = (
    b"Unable to register cu",
    b"TF-TRT Warning: Could not find TensorRT",
    b"All log messages before absl::InitializeLog()",
    b"oneDNN custom operations are on",
    b"Could not find cuda drivers",
    b"failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
)


@dataclasses.dataclass(frozen=True)
class Parsed:
    """A parsed command line. The command's own flags are attributes, too."""

    own: object  # the command's own flags, an instance of the dataclass that declares them
    values: dict  # of the training flags, if the command has them
    flagfiles: tuple[str, ...]  # as given on the command line
    given: tuple[str, ...]  # names of the flags on the command line, without those in flagfiles
    written: tuple[str, ...]  # those in flagfiles, too
    rest: tuple[str, ...]  # positional arguments

    def __getattr__(self, name: str):
        return getattr(self.own, name)

    @functools.cached_property
    def config(self) -> table.Config:
        """The `Config` of the training flags; --run_dir defaults to the last flagfile's name."""
        config = flag_values.to_config(self.values, self.given)
        # Here and not in `Config`, so that runs of the other stack can be read.
        if config.sampler == "resampler" and not stack.has("tensorflow_addons"):
            raise errors.UserError(f"--sampler: {stack.NO_RESAMPLER}")
        if config.run_dir:
            return config
        flagfile = self.flagfiles[-1] if self.flagfiles else ""
        run_dir = run_dirs.default(config, flagfile)
        return dataclasses.replace(config, run_dir=run_dir)


@dataclasses.dataclass(frozen=True)
class NoFlags:
    """The flags of a command that has none of its own."""


def parse(arguments, own=NoFlags, training: bool = False, positional: bool = False) -> Parsed:
    """Parses arguments. Flags on the command line override those in flagfiles, in any order.

    `own` is a dataclass whose fields are the command's own flags. `training` adds the flags of a
    `Config`; `positional` allows positional arguments.
    """
    registry = flags.FlagValues()
    for field in dataclasses.fields(own):
        fields.define(field, registry)
    if training:
        flag_values.define_flags(registry)
    of_files, ours, names = flagfiles.expand(arguments)
    rest = flag_values.parse(registry, [*of_files, *ours])
    if rest and not positional:
        raise errors.UserError(f"unexpected arguments: {' '.join(rest)}")
    return Parsed(
        own=_own(own, registry),
        values=flag_values.of_flags(registry) if training else {},
        flagfiles=tuple(names),
        given=_given(registry, ours),
        written=_given(registry, [*of_files, *ours]),
        rest=tuple(rest),
    )


def _own(kind, registry: flags.FlagValues):
    values = {}
    for field in dataclasses.fields(kind):
        value = registry[field.name].value
        if value is None:
            raise errors.UserError(f"--{field.name}: required; {field.metadata['help']}")
        values[field.name] = fields.value_of(field, value)
    return kind(**values)


def _given(registry: flags.FlagValues, arguments) -> tuple[str, ...]:
    """The names of the flags among the arguments."""
    named = [re.match(r"--?(no)?([\w.]+)", argument) for argument in arguments]
    names = [name for match in named if match for name in (match[0].lstrip("-"), match[2])]
    return tuple(name for name in registry if name in names)


# ---- commands


def command(main, own=NoFlags, training: bool = False, positional: bool = False) -> None:
    """Checks the flags, then runs main(parsed); an integer that it returns is the exit status.

    `own`, `training` and `positional` are those of `parse`. A main that needs TensorFlow imports
    it by `import_tensorflow_quietly` when everything that can be checked without it is right.
    """
    _use_utf8()
    arguments = sys.argv[1:]
    with user_errors():
        for argument in arguments:
            if _is_undecodable(argument):
                raise errors.UserError(f"{argument!a}: expected UTF-8, got other bytes")
        if {"--help", "-help", "-h", "--helpfull"} & set(arguments):
            print(help_text(sys.modules["__main__"].__doc__ or "", own, training), flush=True)
            return
        parsed = parse(arguments, own, training, positional)
        status = main(parsed)
    if isinstance(status, int) and status:
        sys.exit(status)


def _use_utf8() -> None:
    """Makes file names UTF-8 in any locale; characters that the terminal lacks become escapes.

    In a locale such as C or Latin-1, Python and TensorFlow would spell the same path differently.
    Python chooses its encoding at its start, so the command starts again in Python's UTF-8 mode;
    the terminal keeps its own encoding.
    """
    if sys.getfilesystemencoding() != "utf-8":
        shown = getattr(sys.stdout, "encoding", None) or "ascii"
        os.environ.setdefault("PYTHONIOENCODING", shown)
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    if sys.flags.utf8_mode:  # otherwise Python's open() would follow
        # TensorFlow's C++ code lowers letters by the locale; the Turkish one has another small i.
        locale.setlocale(locale.LC_CTYPE, "C")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_undecodable(text: str) -> bool:
    """Whether an argument has bytes that are not UTF-8, which Python keeps as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def help_text(description: str, own=NoFlags, training: bool = False) -> str:
    """The help: all flags with their defaults, the training flags in groups."""
    lines = [description.strip()]
    if dataclasses.fields(own):
        lines += ["", "Flags (defaults in brackets):"]
        for field in dataclasses.fields(own):
            shown = {None: "required", (): ""}
            default = shown.get(field.default, fields.text_of(field.default))
            lines += _described(field, default)
    if training:
        lines += ["", "--flagfile=<file> reads flags from a file; the command line overrides it."]
        lines += ["Defaults in brackets."]
        for group in GROUPS:
            lines += ["", f"{group}:"]
            # --method first, as it decides which of the others are used.
            for name in sorted(table.FLAGS, key=lambda name: name != "method"):
                if table.FLAGS[name].metadata["group"] == group:
                    lines += _described(table.FLAGS[name], table.default_text(name))
    return "\n".join(lines)


def _described(field: dataclasses.Field, default: str) -> list[str]:
    text, choices = field.metadata["help"], field.metadata["choices"]
    if choices:
        text = f"{' | '.join(filter(None, choices))}. {text}"
    indent = {"initial_indent": " " * 6, "subsequent_indent": " " * 6}
    text += f" [{default}]" if default else ""
    return [f"  --{field.name}", *textwrap.wrap(text, 88, **indent)]


@contextlib.contextmanager
def user_errors():
    """Turns a `UserError` into one message and exit status 2."""
    try:
        yield
    except errors.UserError as error:
        print(f"error: {escapes.printable(str(error))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _ABOUT_FILES:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        # Of Python, of NumPy, or of TensorFlow, which may not be imported.
        if type(error).__name__ not in ("MemoryError", "_ArrayMemoryError", _OUT_OF_MEMORY):
            raise
        said = str(error).strip().partition("\n")[0]
        print(f"error: not enough memory{said and f' ({said})'}; {LESS_MEMORY}", file=sys.stderr)
        sys.exit(2)


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow and hides the harmless messages that its C++ library prints.

    The library writes to the file descriptor directly, so the descriptor is captured. Only
    commands do this; importing rat_tf has no such side effect.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            import tensorflow

            tensorflow.config.list_physical_devices()  # this is when it looks for GPUs
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            for line in captured:
                if not any(noise in line for noise in _STARTUP_NOISE):
                    os.write(2, line)
    try:
        stack.check_keras()
    except ImportError as error:
        raise errors.UserError(str(error)) from None
    # Otherwise absl, which the commands use, would print every TensorFlow warning again.
    tensorflow.get_logger().setLevel("WARNING")
    tensorflow.get_logger().propagate = False
