"""The methods: each is a `keras.Model` with its own objective, in its own file.

Classes are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

from rat_tf.methods import options

_CLASSES = {
    "base": {"Method"},
    "rat_mixup": {"RATMixup"},
    "special_cases": {"Random", "VAT"},
}
for _options in options.METHODS.values():
    _module, _, _name = _options.model.partition(":")
    _CLASSES.setdefault(_module, set()).add(_name)

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_CLASSES)
