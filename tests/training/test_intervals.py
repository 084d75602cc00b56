import math

import pytest

from rat_tf.training import intervals


@pytest.mark.parametrize("wrong, n", [(0, 10), (3, 40), (26, 500)])
def test_wilson_by_its_formula(wrong, n):
    p, z = wrong / n, 1.959963984540054
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert intervals.wilson(p, n) == pytest.approx((centre - half, centre + half), abs=1e-12)


def test_text():
    assert intervals.text(0.05, 100) == "5.00% (95 % interval 2.15% to 11.18%, 100 images)"
    assert intervals.text(0.05, None) == "5.00%"  # of a run of an earlier version
