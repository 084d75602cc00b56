"""Refuses work that cannot fit into memory, before anything is allocated, and bounds batches.

Estimates are lower bounds, and they are compared with all the memory there is, free or not: what
works is never refused. What only just does not fit ends later, when memory runs out.
"""

from __future__ import annotations

from collections.abc import Mapping

import psutil

from rat_tf import errors


def of_machine() -> int:
    """Bytes of memory of this machine, swap space included."""
    return psutil.virtual_memory().total + psutil.swap_memory().total


def check(needs: Mapping[str, float], advice: str, available: float | None = None) -> None:
    """A `UserError` if the sum of the `needs`, in bytes by what needs them, is not `available`."""
    available = of_machine() if available is None else available
    needed = sum(needs.values())
    if needed <= available:
        return
    listed = ", ".join(f"{gigabytes(size)} for {what}" for what, size in needs.items() if size)
    raise errors.UserError(
        f"not enough memory: this needs at least {gigabytes(needed)} ({listed}), and there are "
        f"{gigabytes(available)}; {advice}"
    )


def at_once(most: int, image_shape) -> int:
    """`most` images of up to 32×32 pixels; of larger ones as many as have no more pixels, or 1."""
    height, width = image_shape[:2]
    return max(min(most, most * 32 * 32 // (height * width)), 1)


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.0f} GB" if size >= 1e10 else f"{size / 1e9:.2g} GB"
