"""From a run of rat_tf to a served classifier: SavedModel, TF Serving, client."""

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)
