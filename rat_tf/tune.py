"""Searches for good flags: trains many classifiers and compares their validation errors.

    python -m rat_tf.tune --flagfile=configs/cifar10_4000.cfg               the paper's grid of ε
    python -m rat_tf.tune --flagfile=… --tuner=bayesian --max_trials=30 \\
        --search="epsilon.affine=0.1:1, xi=1e-6|1e-2, consistency=0.1:1:log"
    python -m rat_tf.tune --flagfile=… --search_composition --max_trials=50

--search takes any flag that changes the result, and epsilon.<transformation>. Its values are a|b|c,
a..b (whole numbers), start:stop:step, start:stop, start:stop:log or start:stop:log:count.
--search_composition searches which transformations to apply, in which order, with which ε.

A trial is a run of rat_tf.train in <output>/trials/<id> without its evaluation on the test set.
Trials are ranked by their lowest validation error. The search ends with a table, trials.csv,
trials.png and best.cfg, a flagfile for rat_tf.train. To test the best trial without training it
again: python -m rat_tf.train --flagfile=<trial>/flags.cfg --run_dir=<trial>

After any interruption, kill -9 and power cuts included, the same command resumes the search: no
finished trial is repeated, and an unfinished one resumes from its checkpoint. Exit status: 0
finished, 2 invalid flags or data, 75 interrupted by Ctrl-C or SIGTERM.

Several machines: start the same command on all of them, with an --output that all share, and with

    KERASTUNER_ORACLE_IP=<address of the chief> KERASTUNER_ORACLE_PORT=<port>
    KERASTUNER_TUNER_ID=chief on one of them, worker1, worker2, … on the others

in the environment. The chief hands out trials and trains none, so a machine with GPUs may run a
chief and a worker. If a worker dies, another one gets its trial after a minute, and it can be
restarted at any time. If the chief dies, restart all of them. The default address is 127.0.0.1.
The chief has no authentication: use it only in a trusted network.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys

from rat_tf import errors, training, tuning
from rat_tf.config import cli, recipe


def main(parsed: cli.Parsed) -> int:
    # What to search, and where; all flags are checked here.
    if parsed.values["run_dir"]:
        raise errors.UserError(
            "--run_dir: not used by rat_tf.tune; every trial has its own folder in --output"
        )
    if "budget" in parsed.given:
        raise errors.UserError(
            "--budget: not used by rat_tf.tune, whose trials must have the same number of steps; "
            "use flags.cfg of a run with --budget as --flagfile"
        )
    config, role = parsed.config, tuning.search_settings.role()
    settings = parsed.own.resolved(config)
    space = tuning.search_space.parse(
        settings.search, config, settings.tuner, settings.search_composition
    )
    searched = [parameter.name for parameter in space.parameters]
    recipe.check_steps(parsed, "--iterations=<steps>", searched)
    tuning.search_settings.check_folder(settings, config)
    cli.import_tensorflow_quietly()

    # The trials.
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        tuning.trial_runner.search(settings, space, role)
    except (training.signals.Interrupted, KeyboardInterrupt):
        print("\ninterrupted; the same command resumes the search", file=sys.stderr)
        return cli.STOPPED
    except tuning.oracles.ChiefLost as error:
        print(f"\nthe chief does not answer ({error.code().name.lower()}); start it again, then "
              "the same command resumes the search", file=sys.stderr)  # fmt: skip
        return cli.STOPPED
    finally:
        signal.signal(signal.SIGTERM, handler)
    if role == "worker":
        print("no more trials; the chief writes the results")
        return 0

    # The results.
    print("\n" + tuning.trials.report(settings.output, settings.text(), config))
    print(f"\nresults in {settings.output}")
    best = os.path.join(settings.output, "best")
    if os.path.exists(f"{best}.cfg"):
        command = ["python", "-m", "rat_tf.train", f"--flagfile={best}.cfg", f"--run_dir={best}"]
        print("to train and test with the best flags:", shlex.join(command), sep="\n")
    return 0


if __name__ == "__main__":
    cli.command(main, tuning.search_settings.Settings, training=True)
