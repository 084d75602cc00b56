"""Every picture that is drawn. Modules are loaded when they are asked for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["canvas", "contact_sheet", "evaluation", "moons", "report", "run", "search"],
)
