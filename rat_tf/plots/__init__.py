"""All figures. Modules are imported on first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "canvas",
        "contact_sheet",
        "evaluation",
        "moons",
        "page",
        "report",
        "run",
        "search",
    ],
)
