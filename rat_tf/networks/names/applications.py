"""The networks of tf.keras.applications: keras:MobileNetV2 and others."""

from __future__ import annotations

from rat_tf import errors
from rat_tf.networks.names import base

#: The smallest height and width that they take.
SMALLEST = 32
#: The modules of tf.keras.applications and their networks, which share the input's preprocessing.
MODULES = {
    "vgg16": ("VGG16",),
    "vgg19": ("VGG19",),
    "resnet": ("ResNet50", "ResNet101", "ResNet152"),
    "resnet_v2": ("ResNet50V2", "ResNet101V2", "ResNet152V2"),
    "mobilenet_v2": ("MobileNetV2",),
    "mobilenet_v3": ("MobileNetV3Small", "MobileNetV3Large"),
    "efficientnet": tuple(f"EfficientNetB{i}" for i in range(8)),
    "efficientnet_v2": tuple(f"EfficientNetV2{i}" for i in ("B0", "B1", "B2", "B3", "S", "M", "L")),
    "densenet": ("DenseNet121", "DenseNet169", "DenseNet201"),
    "convnext": tuple(f"ConvNeXt{i}" for i in ("Tiny", "Small", "Base", "Large", "XLarge")),
}
NAMES = tuple(name for names in MODULES.values() for name in names)


def _check(name: str) -> str | None:
    if name in NAMES:
        return None
    hint = errors.did_you_mean(name, NAMES)
    return f"expected keras:<name> with one of {', '.join(NAMES)}, got {f'keras:{name}'!r}{hint}"


FAMILY = base.Family(
    pattern=r"keras:(.*)",
    expected="keras:<name> such as keras:MobileNetV2",
    about="keras:<name>, the VGGs, ResNets, MobileNets, EfficientNets, DenseNets and ConvNeXts of "
    f"tf.keras.applications, for images of {SMALLEST}x{SMALLEST} or larger",
    module="rat_tf.networks.applications",
    builder="build",
    foreign=True,
    check=_check,
)
