"""A search with KerasTuner. Modules are loaded on first use: flags are checked before."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["oracles", "search_settings", "search_space", "trial_runner", "trials"],
)
