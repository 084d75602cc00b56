"""Hyper-parameter search with KerasTuner. Modules are imported on first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["oracles", "search_settings", "search_space", "trial_runner", "trials"],
)
