"""Batch normalisation with a call argument: whether to update the running statistics."""

import tensorflow as tf


class BatchNorm(tf.keras.layers.Layer):
    """y = γ (x - μ)/√(σ² + ε) + β over [B, H, W, C], per channel.

    In training μ, σ² are those of the batch. Running statistics move by (1 - momentum) towards the
    batch's (σ² unbiased) only if `update_stats`: the search and the adversarial pass of RAT must
    not change the statistics that classify clean images. It is an argument of the call and not an
    attribute, because replica threads interleave and would see each other's.
    `synchronized` takes μ, σ² over the images of all replicas.
    """

    def __init__(self, momentum=0.9, epsilon=1e-5, synchronized=False, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon
        self.synchronized = synchronized

    def build(self, input_shape):
        channels = input_shape[-1:]
        # float32 under any precision policy: the fused kernel requires it.
        options = {"shape": channels, "dtype": tf.float32, "experimental_autocast": False}
        running = {
            "trainable": False,
            "synchronization": tf.VariableSynchronization.ON_READ,
            "aggregation": tf.VariableAggregation.MEAN,
        }
        self.gamma = self.add_weight("gamma", initializer="ones", **options)
        self.beta = self.add_weight("beta", initializer="zeros", **options)
        self.moving_mean = self.add_weight("moving_mean", initializer="zeros", **options, **running)
        self.moving_variance = self.add_weight(
            "moving_variance", initializer="ones", **options, **running
        )
        super().build(input_shape)

    def call(self, inputs, training=False, update_stats=True):
        if not training:
            return self._fused(inputs, self.moving_mean, self.moving_variance, False)[0]
        context = tf.distribute.get_replica_context()
        if self.synchronized and context and context.num_replicas_in_sync > 1:
            outputs, mean, variance = self._across_replicas(inputs, context)
        else:
            outputs, mean, variance = self._fused(inputs, [], [], True)
        if update_stats:
            for running, batch in ((self.moving_mean, mean), (self.moving_variance, variance)):
                running.assign_sub((running - tf.stop_gradient(batch)) * (1 - self.momentum))
        return outputs

    def _fused(self, inputs, mean, variance, is_training):
        normalised = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=self.gamma,
            offset=self.beta,
            mean=mean,
            variance=variance,
            epsilon=self.epsilon,
            is_training=is_training,
        )
        return normalised.y, normalised.batch_mean, normalised.batch_variance

    def _across_replicas(self, inputs, context):
        x = tf.cast(inputs, tf.float32)
        pixels = tf.cast(tf.size(x) / tf.shape(x)[-1], tf.float32)
        sum_over = tf.distribute.ReduceOp.SUM
        count, total = context.all_reduce(sum_over, [pixels, tf.reduce_sum(x, [0, 1, 2])])
        mean = total / count
        # Centred first, at the price of a second reduction: E[x²] - E[x]² cancels in float32, and
        # can come out negative.
        centred = x - mean
        variance = context.all_reduce(sum_over, tf.reduce_sum(centred**2, [0, 1, 2])) / count
        outputs = centred * tf.math.rsqrt(variance + self.epsilon) * self.gamma + self.beta
        return tf.cast(outputs, inputs.dtype), mean, variance * count / (count - 1)
