"""How exactly some images tell an error."""

from __future__ import annotations


def wilson(error: float, images: int) -> tuple[float, float]:
    """The 95 % interval of an error measured on `images` images (Wilson, 1927)."""
    import scipy.stats  # takes a second, and most commands do without it

    found = scipy.stats.binomtest(round(error * images), images).proportion_ci(0.95, "wilson")
    return found.low, found.high


def text(error: float, images: int | None) -> str:
    """5.00% (95 % interval 2.15% to 11.18%, 100 images)."""
    if not images:
        return f"{error:.2%}"
    low, high = wilson(error, images)
    return f"{error:.2%} (95 % interval {low:.2%} to {high:.2%}, {images:,} images)"
