"""What the processes of benchmarks.faults have imported before they begin."""

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
from rat_tf.config import cli

cli.import_tensorflow_quietly()

import export.verification  # noqa: E402, F401
import rat_tf.data.digits  # noqa: E402, F401
import rat_tf.experiments.execution  # noqa: E402, F401
import rat_tf.training.loop  # noqa: E402, F401
import rat_tf.tuning.trial_runner  # noqa: E402, F401
