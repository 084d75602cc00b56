"""Constants shared by exporter, server configuration and client."""

NAME = "model"  # default name of the model on the server, as in TF Serving's image

#: The sizes that the server pads batches to; the last is the largest request it accepts.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
SERVER_FILE = "tf_serving.txt"  # in the assets of a version: the TF Serving that fits it
