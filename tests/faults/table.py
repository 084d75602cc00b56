"""Bad inputs by command: the arguments, and words that the one message must have.

In arguments {tmp} is a folder of `world`, {gold} the run folder of an earlier version. Arguments
are split at spaces.
"""

from tests.faults import other_commands

TINY = (
    "--dataset=digits --labels=20 --network=tiny --labeled_batch=10 --unlabeled_batch=10 "
    "--iterations=8 --validate_every=8 --run_dir={tmp}/new "
)
FOLDER = "--network=tiny --labels=0 --run_dir={tmp}/new --dataset=folder:{tmp}/"
KERAS = "--network=keras:MobileNetV2 --image_size=32 "

#: Flags that every command with training flags refuses in the same way.
FLAGS = {
    "--labels=-1": "--labels: expected a number >= 0, got -1",
    "--labels=many": "--labels: expected a whole number, got 'many'",
    "--labels=1e400": "--labels: expected a whole number",
    "--labels=": "--labels: expected a whole number, got ''",
    "--labels=99999999999999999999": "--labels: expected a number >= 0 and < 2\\^63",
    "--labels=٣x": "--labels: expected a whole number",
    "--label=5": "label",
    "--iterations=0": "--iterations: expected a number > 0, got 0",
    "--iterations=1e3": "--iterations: expected a whole number",
    "--iterations=10 --validate_every=3": "--validate_every: expected a divisor of --iterations=10",
    "--iterations=1000000000000000000000": "--iterations: expected a number > 0 and < 2\\^63",
    "--decay_at=1000000000000000000000": "--decay_at",
    "--consistency_rampup=101%": "--consistency_rampup: expected .* share",
    "--consistency_rampup=-5": "--consistency_rampup",
    "--consistency=nan": "--consistency: expected a number >= 0, got nan",
    "--consistency=inf": "--consistency: expected a number >= 0, got inf",
    "--consistency=-0.1": "--consistency: expected a number >= 0",
    "--learning_rate=0": "--learning_rate: expected a number > 0",
    "--learning_rate=1e300": "--learning_rate: expected a number > 0 and < 2\\^63",
    "--validation=1": r"--validation: expected a number in \[0, 1\), got 1",
    "--validation=nan": "--validation: expected a number in",
    "--seed=-1": r"--seed: expected a number in \[0, 2\^31\)",
    "--seed=2147483648": r"--seed: expected a number in \[0, 2\^31\)",
    "--channels=2": "--channels: expected 0, 1 or 3",
    "--augment_flip=perhaps": "--augment_flip: expected true or false",
    "--method=rta": "--method: expected one of .* did you mean 'rat'",
    "--method=": "--method: expected one of",
    "--method=supervised --xi=1": "--xi: not used by",
    "--stratify=equal": "--stratify: expected one of balanced, proportional",
    "--dataset=": "--dataset: expected svhn",
    "--dataset=svnh": "--dataset: .* did you mean 'svhn'",
    "--dataset=folder:": "--dataset: expected",
    "--network=wrn-28": "--network: expected",
    "--network=wrn-29-2": "--network: expected",
    "--network=wrn-28-0": "--network: expected",
    "--network=mlp-0": "--network: expected",
    "--network=": "--network: expected",
    "--transforms=": "--transforms: expected <name>:<epsilon>",
    "--transforms=nois:1": "--transforms: .* did you mean 'noise'",
    "--transforms=noise": "--transforms: expected noise:<epsilon>",
    "--transforms=noise:0": "--transforms: .* epsilon > 0",
    "--transforms=noise:nan": "--transforms: .* epsilon > 0",
    "--transforms=noise:1,noise:2": "--transforms: expected each transformation once",
    "--transforms=noise:1,,": "--transforms: expected",
    "--transforms=affine:1e30": "--transforms: .* epsilon > 0 and < 1,000,000",
    "--transforms=affine:inf": "--transforms: .* epsilon > 0",
    "--xi=eps0": "--xi: expected a number > 0",
    "--xi=1e30": "--xi: expected a number > 0 and < 1,000,000",
    "--xi=-1": "--xi: expected a number > 0",
    "--power_iterations=1000000": r"--power_iterations: expected a number in \[1, 1000\]",
    "--adversary=both --candidates=1000000": r"--candidates: expected a number in \[1, 1000\]",
    "--method=mixmatch --augmentations=1000000": r"--augmentations: expected a number in",
    "--logical_devices=100000": r"--logical_devices: expected a number in \[1, 256\]",
    "--jit_compile --sampler=resampler": "--sampler: XLA cannot compile resampler",
    "--adversary_scale=0.3": "--adversary_scale: expected 1, 0.5 or 0.25",
    "--adversary_share=0": "--adversary_share: expected",
    "--mixup_alpha=1": "--mixup_alpha: not used without --mixup",
    "--evaluate=teacher --ema_decay=0": "--ema_decay: must be > 0",
    "--mixed_precision=float8": "--mixed_precision: expected one of",
    "--strategy=tpu": "--strategy: expected one of",
    "--consistency_rampup=140%": "--consistency_rampup: expected .* share",
    "--decay_at=-5%": "--decay_at: expected .* share",
    "--validate_every=0%": "--validate_every: expected",
    "--validate_every=0": "--validate_every: expected a number >= 1, got 0",
    "--validate_every=abc": "--validate_every: expected .* share",
    "--validate_every=nan%": "--validate_every: expected",
    "--epsilon_rampup=%": "--epsilon_rampup: expected",
    "--budget=soon": "--budget: (expected a time such as 10m or 2h, got 'soon'|not used)",
    "--budget=10": "--budget: (expected a time|not used)",
    "--budget=-5m": "--budget: (expected a time|not used)",
    "--budget=0s": "--budget: (expected a time|not used)",
    "--class_weights=equal": "--class_weights: expected one of none, balanced",
    "--method=mixmatch --class_weights=balanced": "--class_weights: not used with mixed labels",
    "--augment_crop=2": r"--augment_crop: expected a share in \(0, 1\], got 2",
    "--augment_crop=-0.1": "--augment_crop: expected a share in",
    "--augment_color=nan": "--augment_color: expected a number",
    "--augment_color=-1": "--augment_color: expected a number",
    "--freeze=all": "--freeze: expected one of none, batch_norm, backbone, got 'all'",
    "--freeze=backbone": "--freeze: ",
    "--pretrained={tmp}/no.h5": "--pretrained: ",
    "--backbone_learning_rate=-1": "--backbone_learning_rate: expected a number >= 0",
    "--backbone_learning_rate=1": "--backbone_learning_rate: ",
    "--allow_code=maybe": "--allow_code: expected true or false",
    "--network=keras:": "--network: expected keras:<name> with one of",
    "--network=keras:mobilenetv2": "--network: .* did you mean 'MobileNetV2'",
    "--network=a:b:c": "--network: expected",
    "--network=../nets.py:small": "--network: expected",
    "--network=keras:MobileNetV2 --image_size=16": "--image_size: ",
    KERAS + "--preprocessing=gcn_zca": "--preprocessing",
    KERAS + "--sync_batch_norm": "--sync_batch_norm: ",
    KERAS + "--freeze=backbone": "--freeze=backbone",
    "--memory_limit_gb=-1": "--memory_limit_gb: expected a number >= 0",
    "--run_dir=a*b": "--run_dir: (expected a path without|not used by rat_tf)",
    "--undefok=x --nothing": "nothing",
    "--flagfile=": "--flagfile: expected the name of a file",
    "--flagfile": "--flagfile: expected the name of a file",
    "--flagfile=--seed=1": "--flagfile: expected the name of a file",
    "--flagfile=configs/digit50.cfg": "no such file.*did you mean 'configs/digits50.cfg'",
    "--flagfile={tmp}/self.cfg": "self.cfg includes itself",
    "--flagfile={tmp}/one.cfg": "one.cfg includes itself",
    "--flagfile={tmp}/binary.cfg": "binary.cfg is not a text file .UTF-8.",
    "--flagfile={tmp}/latin.cfg": "latin.cfg is not a text file .UTF-8.",
    "--flagfile={tmp}/zero.cfg": "zero.cfg is not a text file",
    "--flagfile={tmp}/words.cfg": "words.cfg, line 2: expected a flag",
    "--flagfile={tmp}/pipe.cfg": "pipe.cfg: expected a file",
    "--flagfile={tmp}": "--flagfile: cannot read",
    "--flagfile=/dev/zero": "/dev/zero",
    "--flagfile={tmp}/deep0.cfg": "more than 50 flagfiles include each other",
    "some words": "unexpected arguments: some words",
}

#: Of rat_tf.train and rat_tf.data, which read the set first.
DATA = {
    TINY + "--labels=21": "--labels: expected a multiple of the 10 classes",
    TINY + "--labels=5000": "--labels: expected at most the 1293 images",
    TINY + "--validation=0": "--validation: the best checkpoint is chosen on validation images",
    TINY + "--augment_shift=9": "--augment_shift: expected less than the 8 pixels",
    TINY + "--svhn_extra": "--svhn_extra: expected --dataset=svhn",
    TINY + "--image_size=100000": "not enough memory: this needs at least .*--image_size",
    TINY + "--logical_devices=3": "--labeled_batch: expected a multiple of the 3 replicas",
    TINY + "--split_file={tmp}/missing.json": "--split_file: .*missing.json: No such file",
    TINY + "--split_file={tmp}": "--split_file: ",
    TINY + "--split_file=/dev/zero": "--split_file: ",
    TINY + "--split_file={tmp}/pipe.cfg": "--split_file: ",
    TINY + "--split_file={tmp}/binary.cfg": "--split_file: ",
    TINY + "--split_file={tmp}/deep.json": "--split_file: ",
    TINY + "--split_file={tmp}/list.json": "--split_file: .*found",
    TINY + "--split_file={tmp}/empty.json": "--split_file: .*JSON",
    TINY + "--split_file={tmp}/index.json --labels=0": "--split_file: .*expected a list of indices",
    "--dataset=tfds:no_such_set --data_dir={tmp}": "expected no_such_set, prepared by TFDS",
    "--dataset=tfds:foo-bar --data_dir={tmp}": "expected the name of a TFDS set",
    "--dataset=svhn --data_dir={tmp}/words.cfg": "--dataset=svhn",
    FOLDER + "nowhere": "no such folder",
    FOLDER + "words.cfg": "words.cfg",
    FOLDER + "none": "expected two or more folders of classes",
    FOLDER + "pipes": "pipe.png: expected an image file, found a folder or a device",
    FOLDER + "device": "null.png: .*(link|device)",
    FOLDER
    + "device --follow_links": "null.png: expected an image file, found a folder or a device",
    FOLDER + "leaving": "away.png: .*found a link to .*--follow_links",
    FOLDER + "circle": "round: the link leads to .*, which contains it",
    FOLDER + "lines": "printable text",
    FOLDER + "latin": "printable text",
    FOLDER + "broken": "broken.png: expected an image, found a broken file",
    FOLDER + "cut": "cut.png: expected an image, found a broken file",
    FOLDER + "bomb": "bomb.png: expected an image of at most 33,554,432 pixels",
    FOLDER + "sizes --image_size=1000000": "not enough memory.*--image_size",
}

#: Of models in the user's files and functions.
MODELS = {
    "--network=no_such_module:f": "--network: no Python module 'no_such_module'",
    "--network=sys:exit": "--network: no Python module 'sys'",
    "--network=bad_networks:missing": "--network=bad_networks:missing: .*no attribute 'missing'",
    "--network=bad_networks:raises": "raises.* failed: RuntimeError: oh .*bad_networks.py, line",
    "--network=bad_networks:leaves": "leaves.* failed: SystemExit",
    "--network=bad_networks:nothing": "--network=bad_networks:nothing: .*expected a tf.keras.Model",
    "--network=bad_networks:other": "expected logits .batch, 10., one per class, got .*batch, 11",
    "--network=bad_networks:softmax": "its last layer gives probabilities",
    "--network=bad_networks:large": "does not take images of 8x8x1.*--image_size",
    "--network=bad_import:f": "bad_import cannot be used: .*bad_import.py, line 1",
    "--network={tmp}/no.keras": "--network: no such file: .*no.keras",
    "--network={tmp}/none.keras": "--network: expected a .keras or .h5 file.*none.keras",
    "--network={tmp}/pipe.keras": "--network: expected a .keras or .h5 file.*pipe.keras",
    "--network={tmp}/words.keras": "--network: expected a .keras or .h5 file.*words.keras",
    "--network={tmp}/deep.keras": "--network: expected a .keras or .h5 file.*deep.keras",
    "--network={tmp}/list.keras": "--network: .*list.keras",
    "--network={tmp}/without.keras": "--network: expected a .keras or .h5 file.*config.json",
    "--network={tmp}/lambda.keras": "lambda.keras has the Lambda layer .*--allow_code",
    "--network={tmp}/strange.keras": "strange.keras has the class X of 3.*--allow_code",
    "--network={tmp}/weights.h5": "weights.h5 has weights and no model",
    KERAS + "--pretrained={tmp}/no.h5": "--pretrained: no such",
    KERAS + "--pretrained={tmp}/none": "--pretrained: .*folder",
    KERAS + "--pretrained={tmp}/pipe.cfg": "--pretrained: ",
    KERAS + "--pretrained=/dev/zero": "--pretrained: ",
    KERAS + "--pretrained={tmp}/words.cfg": "--pretrained: ",
    "--network=bad_networks:good --pretrained={tmp}/weights.h5": "--pretrained: .*weights.h5",
    "--network=bad_networks:good --pretrained={gold}": "--pretrained: .*does not fit",
    "--network=bad_networks:good --pretrained={tmp}/weights.h5 --freeze=batch_norm": "weights.h5",
}

TRAIN = {
    **{TINY + arguments: words for arguments, words in MODELS.items()},
    FOLDER + "everywhere": "root: .*link",
    TINY + "--budget=2h": "--budget: cannot be combined with --iterations",
    TINY + "--augment_color=0.5 --preprocessing=gcn_zca": "--augment_color=0.5: expected",
    TINY + "--init_from={tmp}/words.cfg": "--init_from: expected a run folder",
    TINY + "--init_from={gold} --network=mlp-8": "--network: expected that of --init_from",
    TINY + "--init_from={gold} --pretrained={gold}": "--(init_from|pretrained): ",
    TINY + "--labeled_batch=100000000": "not enough memory: .*a batch of .*--labeled_batch",
    TINY + "--unlabeled_batch=100000000": "not enough memory: .*a batch of",
    TINY + "--network=wrn-10-99999": "not enough memory: .*weights of --network=wrn-10-99999",
    TINY + "--network=mlp-99999999": "not enough memory: .*weights of --network=mlp-99999999",
    TINY + "--unlabeled_batch=0": "--unlabeled_batch: must be > 0",
    TINY + "--run_dir={tmp}/words.cfg": "--run_dir: expected a new or empty folder",
    TINY + "--run_dir={tmp}/none": "--run_dir: expected a new or empty folder",
    TINY + "--run_dir={tmp}/words.cfg/x": "words.cfg",
    TINY + "--run_dir={gold}": "--run_dir: .* was made with other flags",
    TINY + "--run_dir=/proc/nothing": "/proc/nothing",
    TINY + "--run_dir={tmp}/" + "x" * 300: "File name too long",
    TINY + "--strategy=multi_worker": "--strategy=multi_worker: expected .*TF_CONFIG",
    TINY + "--init_from={tmp}/none": "--init_from",
    TINY + "--init_from={tmp}/nowhere": "--init_from",
    TINY + "--adversary_share=0.33": "--adversary_share: expected a whole number of the 10",
}


def rows():
    """(command, arguments, words) of all."""
    digits = "--flagfile=configs/digits50.cfg"
    for command in ("rat_tf.train", "rat_tf.data.__main__", "rat_tf.tune", "rat_tf.sweep"):
        for arguments, words in FLAGS.items():
            yield command, f"{digits} {arguments}", words
    for arguments, words in DATA.items():
        for command in ("rat_tf.train", "rat_tf.data.__main__"):
            yield command, arguments, words
    for arguments, words in TRAIN.items():
        yield "rat_tf.train", arguments, words
    for command, found in other_commands.COMMANDS.items():
        for arguments, words in found.items():
            own = command not in ("rat_tf.sweep", "rat_tf.tune") or "--paper" in arguments
            yield command, arguments if own else f"{digits} {arguments}", words
