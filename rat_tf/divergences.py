"""KL divergence and entropy of class distributions, from logits, per image and in float32."""

import tensorflow as tf


def kl_divergence(p_logits, q_logits) -> tf.Tensor:
    """KL[p ‖ q] = Σ_y p(y) (log p(y) - log q(y)) in nats, [B], the paper's Δ̃_KL."""
    log_p, log_q = _log_softmax(p_logits), _log_softmax(q_logits)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)


def entropy(logits) -> tf.Tensor:
    """-Σ_y p(y) log p(y) in nats, [B]."""
    log_p = _log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)


def _log_softmax(logits) -> tf.Tensor:
    logits = tf.convert_to_tensor(logits)
    dtype = tf.float64 if logits.dtype == tf.float64 else tf.float32
    return tf.nn.log_softmax(tf.cast(logits, dtype))
