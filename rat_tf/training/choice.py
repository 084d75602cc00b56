"""What a command line leaves open: the run folder, and with a recipe the flags and the steps.

See `config.recipe` for what is chosen and how. Here are the steps that need run folders, images
and devices.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time

from rat_tf import config as config_lib
from rat_tf import data, errors
from rat_tf.config import cli, recipe, run_dirs, training_flags
from rat_tf.storage import records
from rat_tf.training import run_folder


@dataclasses.dataclass
class Choice:
    """The config of a command line, as far as it is known without TensorFlow."""

    parsed: cli.Parsed
    config: config_lib.Config
    given: dict | None = None  # to be recorded; None without a recipe
    preset: str = ""  # of the images and this machine; empty without one
    side: int = 0  # of the images, as far as it matters for the preset

    def fit_to_images(self) -> config_lib.Config:
        """The config of a new run: with the preset for its images and this machine."""
        if not recipe.applies(self.parsed):
            return self.config
        import tensorflow as tf

        device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
        self.side = _side(self.parsed, self.config)
        self.preset = recipe.pick(device, self.side, self.parsed.values["budget"])
        print(f"preset   {self.preset}; the flags that you give win over it", flush=True)
        return self._of_preset()

    def _of_preset(self, long: bool = False) -> config_lib.Config:
        found = recipe.config(self.parsed, self.preset, self.side, long)
        return dataclasses.replace(found, run_dir=self.config.run_dir)

    def fit_to_time(self, config, images: data.Data, strategy, began: float):
        """The config with the number of steps for the time, and the line of the expected time."""
        if self.given is None or not recipe.measures(self.parsed):
            return config, ""
        if config.strategy == "multi_worker":
            raise errors.UserError(
                "--budget: several workers cannot agree on a measured number of steps; "
                "use --iterations"
            )
        from rat_tf.training import calibration, progress

        def fitted(config):
            speed = calibration.measure(config, images, strategy)
            bounded = not self.parsed.values["budget"]
            left = training_flags.seconds(config.budget) - (time.monotonic() - began)
            return speed, calibration.fit_to(config, images, speed, left, bounded)

        speed, config = fitted(config)
        long = self.preset and config.iterations >= recipe.LONG_STEPS
        if long and config.options.searches:
            steps = f"{config.iterations:,} steps"
            print(f"preset   {recipe.LONG}, too: {steps} leave time for its search", flush=True)
            speed, config = fitted(self._of_preset(long=True))
        if config.iterations < calibration.FEW:
            print(
                f"warning: {config.iterations} steps are few; a longer --budget, a smaller "
                "--image_size, batch or --network gives more",
                file=sys.stderr,
            )
        total = speed.total(config, images)
        return config, progress.expected(config.iterations, 1 / speed.step, total)


def of(parsed: cli.Parsed) -> Choice:
    """Checks the flags and finds the run folder, and if it is a run, its recorded config."""
    recipe.check_steps(parsed)
    if not (recipe.applies(parsed) or recipe.measures(parsed)):
        config = parsed.config
        if not parsed.values["run_dir"]:
            config = _in_folder(config, _find(config.run_dir, _unlike(config)))
        return Choice(parsed, config)
    config, given = _any_preset(parsed), recipe.given(parsed)
    folder, unlike = config.run_dir, _unlike_given(given, parsed)
    if folder:
        run = run_folder.Run(folder)
        against = unlike(run) if os.path.exists(run.flags) else ""
        if against:
            raise errors.UserError(
                f"--run_dir: {folder} was made with other flags: {against}; use another --run_dir "
                "or the same flags"
            )
    else:
        folder = _find(_default(config, parsed), unlike)
    run = run_folder.Run(folder)
    if os.path.exists(run.flags):
        own = ("run_dir", "budget")
        machine = [n for n in parsed.given if recipe.of_machine(n) and n not in own]
        config = run.config(**{name: parsed.values[name] for name in machine})
    return Choice(parsed, _in_folder(config, folder), given)


def for_new_run(parsed: cli.Parsed) -> Choice:
    """The same as if there were no run yet, for a command that makes none."""
    if not (recipe.applies(parsed) or recipe.measures(parsed)):
        return Choice(parsed, parsed.config)
    config = _any_preset(parsed)
    return Choice(parsed, _in_folder(config, config.run_dir or _default(config, parsed)))


def _any_preset(parsed: cli.Parsed) -> config_lib.Config:
    """To check the flags: the images and devices decide later which preset it is."""
    return recipe.config(parsed, recipe.pick("cpu", 0, "") if recipe.applies(parsed) else "")


def _default(config: config_lib.Config, parsed: cli.Parsed) -> str:
    return run_dirs.default(config, parsed.flagfiles[-1] if parsed.flagfiles else "")


def _find(default: str, unlike) -> str:
    """A finished run of images that have changed since is another run, too."""
    folder, reason = run_folder.own_or_new(
        default, lambda run: unlike(run) or run.changed(run.config())
    )
    if folder != default:
        print(f"{default} is another run ({_begin(reason)}); this one is {folder}", flush=True)
    return folder


def _begin(reason: str, most: int = 2) -> str:
    """A recipe and a full command line may differ in a dozen flags."""
    parts = reason.split("; ")
    more = f"; and {len(parts) - most} more" if parts[most:] else ""
    return "; ".join(parts[:most]) + more


def _unlike(config: config_lib.Config):
    """What keeps a run folder from being that of a config."""

    def differences(run: run_folder.Run) -> str:
        try:
            return "; ".join(config.differences(run.config())[:2])
        except errors.UserError as error:  # of another version, or damaged
            return str(error)

    return differences


def _unlike_given(given: dict[str, str], parsed: cli.Parsed):
    """The same for a command whose other flags were chosen: the flags that were given decide.

    A run that has no record of them is that of the command if it has the defaults for the rest.
    """

    def differences(run: run_folder.Run) -> str:
        try:
            recorded = records.json_object(run.environment, {}).get("given")
            run.config()
        except errors.UserError as error:
            return str(error)
        if not isinstance(recorded, dict):
            return "none of its flags were chosen" if _unlike_plain(parsed)(run) else ""
        return "; ".join(
            f"expected {_shown(name, recorded)}, got {_shown(name, given)}"
            for name in sorted({*recorded, *given})
            if recorded.get(name) != given.get(name)
        )

    return differences


def _unlike_plain(parsed: cli.Parsed):
    try:
        return _unlike(parsed.config)
    except errors.UserError as error:  # possible only with a preset
        message = str(error)
        return lambda run: message


def _shown(name: str, flags: dict) -> str:
    return f"--{name}={flags[name]}" if name in flags else f"no --{name}"


def _in_folder(config: config_lib.Config, folder: str) -> config_lib.Config:
    return dataclasses.replace(config, run_dir=folder)


def _side(parsed: cli.Parsed, config: config_lib.Config) -> int:
    """The side of the images: given, or that of the folder or set; 0 if it is unknown."""
    if "image_size" in parsed.given and config.image_size:
        return config.image_size
    if config.dataset.startswith("folder:"):
        return recipe.side_of_folder(config.dataset)
    try:
        plain = dataclasses.replace(config, image_size=0, augment_shift=0)
        return min(data.find(plain).image_shape[:2])
    except errors.UserError:  # images of different sizes: that of the preset
        return 0
