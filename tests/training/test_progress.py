"""What a user sees of a run: lines and a bar that fit 80 columns, one ETA, the expected time."""

import io

import pytest

from rat_tf import config as config_lib
from rat_tf.training import progress

LOGS = {"loss": 12.345, "kl": 0.123, "val_error": 0.1234, "val_ema_error": 1.0, "cross_entropy": 1}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("logs", [LOGS, {"loss": 1.0}, {"loss": 1.0, "consistency": 2.0}])
@pytest.mark.parametrize("rate", [0, 0.01, 12.3, 1234.5])
@pytest.mark.parametrize(("step", "total"), [(1, 20), (1000, 1000), (1, 500_000)])
def test_a_line_and_a_bar_fit_eighty_columns(step, total, rate, logs):
    line = progress.line(step, total, logs, rate)
    assert len(line) < 80 and line.startswith(f"step {step}/{total}  ")
    assert ("val_error" not in logs) or "error 12.3%, avg 100.0%" in line
    bar = progress.bar(step, total, logs, rate)
    assert len(bar) == 79 and f"{step}/{total}" in bar
    assert line.count("ETA") == bar.count("ETA") == (rate > 0)


def test_the_bar_fills_as_the_run_proceeds():
    filled = [progress.bar(step, 100, {}, 1.0).count("=") for step in (0, 50, 100)]
    assert filled[0] == 0 and filled[2] == pytest.approx(2 * filled[1] + 1, abs=2)
    assert "validating" in progress.bar(5, 100, {"loss": 1.0}, 1.0, "validating")


def test_a_narrow_terminal_gets_a_narrow_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert len(progress.bar(3, 100, {"loss": 1.0}, 2.0)) == 39


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 seconds"), (95, "95 seconds"), (150, "2.5 minutes"), (1800, "30 minutes"),
     (10_000, "2.8 hours"), (1e6, "12 days")],
)  # fmt: skip
def test_times_in_words(seconds, words):
    assert progress.duration(seconds) == words


class Model:
    """What the callback needs of a model: the step."""

    def __init__(self, step):
        self.optimizer = self
        self.iterations = self
        self.step = step

    def numpy(self):
        return self.step


def test_a_resumed_run_says_the_time_of_what_is_left(monkeypatch, capsys):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    config = config_lib.Config(iterations=100, validate_every=10)
    shown = progress.Progress(config, start=60)
    for step in range(61, 66):
        shown.model = Model(step)
        shown.on_train_batch_end(step, {"loss": 1.0})
    assert ": 40 steps at " in capsys.readouterr().out


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_a_bar_and_a_file_gets_lines_only(monkeypatch, terminal):
    out = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    shown = progress.Progress(config_lib.Config(iterations=100, validate_every=10), start=0)
    for step in range(1, 11):
        shown.model = Model(step)
        shown.on_train_batch_end(step, {"loss": 1.0})
    shown.on_test_begin()
    shown.on_epoch_end(0, {"loss": 1.0, "step": 10, "val_error": 0.5})
    shown.on_train_end()
    text = out.getvalue()
    assert ("\r" in text) == terminal and ("validating" in text) == terminal
    lines = [line.split("\r")[-1] for line in text.split("\n")]
    assert lines[0].startswith("time     about ") and ": 100 steps at " in lines[0]
    assert lines[1].startswith("step 10/100  loss 1.00  error 50.0%  ")
    assert all(len(piece) < 80 for piece in text.replace("\r", "\n").splitlines())
    assert "poch" not in text
