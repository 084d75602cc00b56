"""What exporter, server configuration and client agree on."""

NAME = "model"  # the model's at the server, by default; TF Serving's image has the same

#: The sizes that the server pads batches to; the last is the largest request it accepts.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
