"""Many runs: the plan of a sweep, the paper's rows, results, their comparison and tables.

Modules are imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        *("comparison", "curves", "execution", "flagfile_checks", "hyperparameters"),
        *("page", "paper", "plan", "results", "tables", "two_moons"),
    ],
)
