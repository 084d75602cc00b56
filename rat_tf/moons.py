"""The paper's Figure 1, VAT and RAT on two moons.

    python -m rat_tf.moons --output=moons.png

Section "Evaluation on Synthetic Dataset": 10 labelled and 30 unlabelled points per moon, a
three-layer MLP with 128 hidden units, 500 full-batch iterations of Adam with its default
parameters, no ramps. RAT adds to VAT's noise a rotation about the centre of each point's own
semicircle, f(x) = R(x, φ⁽¹⁾) + φ⁽²⁾ with |φ⁽¹⁾| ≤ 10° and ‖φ⁽²⁾‖ ≤ 0.3, both adversarial. It knows
the class of unlabelled points: the paper acts "as if we already know appropriate class-invariant
transformations". Errors are measured on the two noiseless semicircles.

Choices where the paper is silent: Gaussian noise of 0.1 in the data, λ = 1, the entropy
term of the image experiments (0.06), and ξ = ε (without augmentation 1e-6 is lost in float32
rounding). The mean errors over seeds 30-59, which were not used for these choices, are 4.5 % (VAT
0.3), 4.1 % (VAT 0.5) and 2.0 % (RAT, in 26 of the 30 no worse than either). The default is the seed
of 0-9 whose three errors are closest to their means.
"""

from __future__ import annotations

import dataclasses
import os

from rat_tf import errors, experiments, fields, plots
from rat_tf.config import cli


@dataclasses.dataclass(frozen=True)
class Flags:
    output: str = fields.path("moons.png", "Output file; its extension sets the format.")
    seed: int = fields.flag(5, "Seed of data and training.", fields.seed)
    iterations: int = fields.flag(500, "Training steps per panel.", fields.at_least(1))


def check_output(path: str) -> str:
    """Returns the format of the picture; checks before training that it can be written."""
    folder, extension = os.path.dirname(path) or ".", os.path.splitext(path)[1][1:].lower()
    # pgf is excluded: it needs LaTeX, and fails only when the picture is saved.
    formats = sorted({*plots.canvas.formats()} - {"pgf"})
    problem = None
    if extension not in formats:
        problem = f"expected a name ending in one of .{', .'.join(formats)}"
    elif not os.path.isdir(folder):
        problem = f"folder {folder!r} does not exist"
    elif os.path.isdir(path) or not os.access(folder, os.W_OK):
        problem = "cannot be written"
    if problem:
        raise errors.UserError(f"--output={path}: {problem}")
    return extension


def main(output: str, seed: int, iterations: int) -> None:
    extension = check_output(output)
    cli.import_tensorflow_quietly()
    two_moons = experiments.two_moons
    labeled, unlabeled = two_moons.sample(seed)
    models = {}
    print(f"{'':<25} error on the semicircles")
    for title, transform in two_moons.compared(unlabeled).items():
        models[title] = two_moons.train(labeled, unlabeled, transform, iterations, seed)
        print(f"{title:<25} {two_moons.error(models[title]):>24.2%}", flush=True)
    panels = {
        f"{title}: {two_moons.error(model):.1%} error": two_moons.panel(model)
        for title, model in models.items()
    }
    picture = plots.moons.draw(labeled, unlabeled, two_moons.CENTRES, panels)
    plots.canvas.save(picture, output, format=extension, dpi=150)
    print(f"wrote {output}")


if __name__ == "__main__":
    cli.command(lambda f: main(f.output, f.seed, f.iterations), Flags)
