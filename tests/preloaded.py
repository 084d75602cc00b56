"""What the processes of the tests have imported before they begin; see tests/processes.py."""

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
from rat_tf.config import cli

cli.import_tensorflow_quietly()

import rat_tf.data.digits  # noqa: E402, F401
import rat_tf.training.loop  # noqa: E402, F401
import rat_tf.training.run_folder  # noqa: E402, F401
