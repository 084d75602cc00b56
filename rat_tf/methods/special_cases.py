"""The special cases of RAT that have names of their own."""

from __future__ import annotations

from rat_tf.methods import checks, rat
from rat_tf.methods.options import rat as options


class VAT(rat.RAT):
    """Virtual adversarial training (Miyato et al., 2018): the noise of `transforms` alone."""

    defaults = options.VAT

    def __init__(self, *args, transforms: str = options.VAT.transforms, **kwargs):
        noise = checks.option(options.VAT, "transforms", transforms).only("noise")
        if not noise.parts:
            raise ValueError(f"transforms: expected noise:<ε>, got {transforms!r}")
        super().__init__(*args, transforms=noise, **kwargs)


class Random(rat.RAT):
    """Random offsets of norm ε in place of the search."""

    defaults = options.Random

    def __init__(self, *args, **kwargs):
        super().__init__(*args, search=False, **kwargs)
