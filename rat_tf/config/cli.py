"""The command line: flags into a `Config`, mistakes into messages."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
import sys
import textwrap

from absl import flags

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf import fields as fields_lib
from rat_tf.config import flag_values


def help_text(description: str) -> str:
    """All flags with their defaults, group by group."""
    lines = [
        description.strip(),
        "",
        "--flagfile=<file> reads flags from a file; flags given on the",
    ]
    lines += ["command line win. Defaults in brackets."]
    groups: dict[str, list] = {}
    for field in dataclasses.fields(config_lib.Config):
        groups.setdefault(field.metadata["group"], []).append(field)
    for group, fields in groups.items():
        lines += ["", f"{group}:"]
        for field in fields:
            text = f"{field.metadata['help']} [{fields_lib.default_text(field)}]"
            choices = field.metadata["choices"]
            if choices:
                text = f"{' | '.join(filter(None, choices))}. {text}"
            lines.append(f"  --{field.name}")
            lines += textwrap.wrap(text, 88, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def from_flags(flagfiles=(), given=()) -> config_lib.Config:
    """The `Config` of the parsed flags; --run_dir is named after the last flagfile if not given.

    `given` are the names of flags that stood on the command line itself.
    """
    config = flag_values.to_config(flag_values.of_flags(flags.FLAGS), given)
    if config.run_dir:
        return config
    run_dir = default_run_dir(config, flagfiles[-1] if flagfiles else "")
    return dataclasses.replace(config, run_dir=run_dir)


def default_run_dir(
    config: config_lib.Config, flagfile: str = "", varied: dict | None = None, root: str = "runs"
) -> str:
    """<root>/<flagfile>/<method>-seed<seed>, with what else keeps runs of one flagfile apart.

    A flagfile is named by its path below configs/, else by its own name. The number of labels
    is shown where it is not the flagfile's own; a sweep adds the flags that it varies.
    """
    if flagfile:
        path = os.path.splitext(os.path.normpath(flagfile))[0].split(os.sep)
        folders = path[:-1]
        below = len(folders) - folders[::-1].index("configs") if "configs" in folders else -1
        name = os.path.join(*path[below:])
        labels = flag_values.of_file(flagfile)["labels"]
    else:
        name = re.sub(r"\W+", "-", f"{config.dataset}{config.labels or ''}")
        labels = config.labels
    own = {"labels": config.labels} if config.labels != labels else {}
    shown = {**own, **(varied or {})}
    parts = [config.method, *(f"{flag}{_plain(value)}" for flag, value in shown.items())]
    return os.path.join(root, name, "-".join([*parts, f"seed{config.seed}"]))


def _plain(value) -> str:
    """A flag's value as part of a file name."""
    return re.sub(r"[^\w.]+", "_", str(value))


def run(main) -> None:
    """Parses the flags of a training command and calls main(config)."""
    if {"--help", "-help", "-h"} & set(sys.argv[1:]):
        print(help_text(sys.modules["__main__"].__doc__ or ""))
        return
    flag_values.define_flags(flags.FLAGS)
    flagfiles, rest = take_flagfiles(sys.argv[1:])
    with user_errors():
        given = parse_given(rest)
        # Flagfiles first, so that the command line wins wherever on it they stand.
        parse_flags([*(f"--flagfile={name}" for name in flagfiles), *rest])
        main(from_flags(flagfiles, given))


def command(main, positional: bool = False) -> None:
    """Runs a command that has a few absl flags of its own: main(flags).

    With `positional` it takes other arguments, too: main(flags, arguments).
    """
    description = sys.modules["__main__"].__doc__ or ""
    if {"--help", "-help", "-h"} & set(sys.argv[1:]):
        print(description.strip(), flags.FLAGS.module_help(sys.argv[0]), sep="\n")
        return
    with user_errors():
        rest = parse_flags(sys.argv[1:], positional)
        main(flags.FLAGS, *([rest] if positional else []))


def parse_given(arguments) -> list[str]:
    """Parses absl's flags; the names of those that are among the arguments."""
    parse_flags(arguments)
    return [name for name in flags.FLAGS if flags.FLAGS[name].present]


def parse_flags(arguments, positional: bool = False) -> list[str]:
    """Parses absl's flags; a mistake in them is a `UserError`. Returns the other arguments."""
    try:
        rest = flags.FLAGS([sys.argv[0], *arguments])[1:]
    except flags.Error as error:
        raise errors.UserError(flag_values.message(error)) from None
    if rest and not positional:
        raise errors.UserError(f"unexpected arguments: {' '.join(rest)}")
    return rest


@contextlib.contextmanager
def user_errors():
    """Ends the program with status 2 and one message where a `UserError` is raised."""
    try:
        yield
    except errors.UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror}", file=sys.stderr)
        sys.exit(2)


def take_flagfiles(arguments) -> tuple[list[str], list[str]]:
    """Separates the names of flagfiles from the other arguments."""
    flagfiles, rest, remaining = [], [], iter(arguments)
    for argument in remaining:
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name == "flagfile":
            flagfiles.append(value if equals else next(remaining, ""))
        else:
            rest.append(argument)
    return flagfiles, rest
