"""Welch's t-test, from its definition."""

import math

import scipy.special


def welch(m1, s1, n1, m2, s2, n2):
    """p of two samples by their means, standard deviations and sizes."""
    v1, v2 = s1**2 / n1, s2**2 / n2
    freedom = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
    return t_test_p((m1 - m2) / math.sqrt(v1 + v2), freedom)


def t_test_p(t: float, freedom: float) -> float:
    """Two-sided p of Student's t: the incomplete beta function I_x(ν/2, 1/2), x = ν/(ν+t²)."""
    return scipy.special.betainc(freedom / 2, 0.5, freedom / (freedom + t**2))
