import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils import class_weight

from rat_tf import errors
from rat_tf.data import examples, streams
from tests.data import make

STEPS = 9


@pytest.fixture(params=[2048, 0], ids=["small", "large"])
def both_shuffles(request, monkeypatch):
    """By sorting random numbers, and by the shuffle of single indices."""
    monkeypatch.setattr(streams, "SMALL", request.param)


def parts(tmp_path=None):
    """11 labelled and 23 unlabelled images, each known by its pixels; mapped if a path is given."""
    pixels = make.pixels(40, (4, 4, 3))
    if tmp_path:
        np.save(tmp_path / "pixels.npy", pixels)
        pixels = np.load(tmp_path / "pixels.npy", mmap_mode="c")
    whole = examples.Examples(pixels, np.arange(40) * 10)
    order = np.random.default_rng(1).permutation(40)
    return whole.take(order[:11]), whole.take(order[11:34])


def whole(start=0):
    """What one worker sees; the pipeline is built once."""
    return _whole(streams.SMALL, start)


@functools.cache
def _whole(small, start):
    return run(start=start)


def run(steps=STEPS, where=None, **options):
    values = {"labeled_batch": 4, "unlabeled_batch": 6, "seed": 3, **options}
    stream = streams.training(*parts(where), **values)
    return [
        (a.numpy(), b.numpy(), c.numpy()) for (a, b), c in itertools.islice(iter(stream), steps)
    ]


def same(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for our, their in zip(ours, theirs):
        for a, b in zip(our, their):
            np.testing.assert_array_equal(a, b)


def positions(images, found):
    """Which of the examples each image is."""
    known = {image.tobytes(): i for i, image in enumerate(found.images)}
    return [known[image.tobytes()] for image in images]


@pytest.mark.usefixtures("both_shuffles")
@pytest.mark.parametrize("stream, size", [(0, 11), (2, 23)])
def test_each_epoch_has_every_image_once_and_an_order_of_its_own(stream, size):
    batches = run(60)
    seen = positions(np.concatenate([b[stream] for b in batches]), parts()[stream // 2])
    epochs = [tuple(seen[i : i + size]) for i in range(0, len(seen) - size, size)]
    assert len(epochs) > 10
    for epoch in epochs:
        assert sorted(epoch) == list(range(size))
    assert len(set(epochs)) == len(epochs)


def test_labels_belong_to_their_images():
    labeled, _ = parts()
    for images, labels, _ in run():
        np.testing.assert_array_equal(labeled.labels[positions(images, labeled)], labels)


@pytest.mark.usefixtures("both_shuffles")
@pytest.mark.parametrize(
    "start, prefetch",
    [(0, 1), (0, 7), (1, 0), (5, 1), (5, 7), (1_000_000_007, 0), (1_000_000_007, 7)],
)
def test_start_at_a_step_equals_having_run_to_it(start, prefetch):
    if start < STEPS:
        same(run(STEPS - start, start=start, prefetch=prefetch), whole()[start:])
    else:
        same(run(3, start=start)[2:], run(1, start=start + 2, prefetch=prefetch))


@pytest.mark.usefixtures("both_shuffles")
@pytest.mark.parametrize("start", [0, 4])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_two_workers_share_the_batches_of_one(start, prefetch):
    workers = [run(start=start, first_replica=w, all_replicas=2, prefetch=prefetch) for w in (0, 1)]
    joined = [tuple(map(np.concatenate, zip(*pair))) for pair in zip(*workers)]
    same(joined, whole(start))


@pytest.mark.usefixtures("both_shuffles")
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_replicas_of_a_worker_take_turns(prefetch):
    in_turn = run(2 * STEPS, replicas=2, all_replicas=2, prefetch=prefetch)
    joined = [tuple(map(np.concatenate, zip(*in_turn[i : i + 2]))) for i in range(0, 18, 2)]
    same(joined, whole())


def test_images_on_disk_give_the_same_batches(tmp_path):
    same(run(where=tmp_path), whole())
    same(run(where=tmp_path, start=4), whole(4))


@pytest.mark.usefixtures("both_shuffles")
def test_seeds_differ():
    assert not np.array_equal(run(1, seed=3)[0][2], run(1, seed=4)[0][2])


@pytest.mark.usefixtures("both_shuffles")
def test_labelled_and_unlabelled_images_are_shuffled_apart():
    """Else those of a set with --include_labeled would come in pairs."""
    _, found = parts()
    stream = streams.training(found, found, labeled_batch=23, unlabeled_batch=23, seed=3)
    for (labeled, _), unlabeled in itertools.islice(iter(stream), 6):
        ours, theirs = (positions(images.numpy(), found) for images in (labeled, unlabeled))
        assert sorted(ours) == sorted(theirs) and ours != theirs


def test_batches_larger_than_the_set():
    images, labels, unlabeled = run(1, labeled_batch=25, unlabeled_batch=50)[0]
    assert (len(images), len(labels), len(unlabeled)) == (25, 25, 50)


def test_no_unlabelled_batch():
    ((_, _, unlabeled),) = run(1, unlabeled_batch=0)
    assert unlabeled.shape == (0, 4, 4, 3)


def test_images_stay_uint8_and_shapes_are_static():
    (images, labels), unlabeled = streams.training(*parts(), 4, 6, 0, all_replicas=2).element_spec
    assert (images.dtype, labels.dtype, unlabeled.dtype) == (tf.uint8, tf.int64, tf.uint8)
    assert images.shape == (2, 4, 4, 3) and labels.shape == (2,) and unlabeled.shape == (3, 4, 4, 3)


@pytest.mark.parametrize("batches, flag", [((3, 4), "labeled_batch"), ((4, 5), "unlabeled_batch")])
def test_uneven_batches_are_refused(batches, flag):
    with pytest.raises(errors.UserError, match=f"--{flag}: expected a multiple of the 2 rep"):
        streams.training(*parts(), *batches, seed=0, all_replicas=2)


def epochs_of(size, count, seed=7, start=0):
    flat = streams.indices(start, size * count, size, seed, streams.LABELED)
    return flat.numpy().reshape(count, size)


@pytest.mark.parametrize("small", [2048, 0])  # by sorting, and by the shuffle of indices
def test_shuffle_is_uniform(monkeypatch, small):
    """Every image comes at every place of an epoch equally often."""
    monkeypatch.setattr(streams, "SMALL", small)
    size, count = 100, 500
    counts = np.zeros((size, size))
    for epoch in epochs_of(size, count):
        counts[np.arange(size), epoch] += 1
    expected = count / size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert 9_100 < chi_square < 10_500  # 9,801 degrees of freedom, standard deviation 140


@pytest.mark.parametrize("size", [20, 5000])
def test_no_epoch_resembles_another(size):
    epochs = epochs_of(size, 600 if size == 20 else 12)
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.arange(size))
    assert len(np.unique(epochs, axis=0)) == len(epochs)
    if size == 5000:  # five standard deviations
        correlation = np.corrcoef(np.vstack([epochs, np.arange(size)]))
        assert np.abs(correlation - np.eye(13)).max() < 5 / np.sqrt(size)


@pytest.mark.parametrize("size", [20, 5000])
def test_seeds_that_share_their_low_bits_differ(size):
    seeds = [0, 256, 2**16, 2**32]
    assert len({epochs_of(size, 1, seed).tobytes() for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("size", [1, 2, 500, 2047, 2048, 2049])
def test_batches_are_cut_out_of_epochs(size):
    whole = streams.indices(0, 7 * 450, size, 1, 0).numpy()
    cut = [streams.indices(7 * step, 7, size, 1, 0).numpy() for step in (0, 1, 73, 449)]
    for step, batch in zip((0, 1, 73, 449), cut):
        np.testing.assert_array_equal(batch, whole[7 * step : 7 * step + 7])


@pytest.mark.parametrize("mapped", [False, True])
def test_evaluation_gives_each_example_once_in_order(tmp_path, mapped):
    labeled, _ = parts(tmp_path if mapped else None)
    dataset = streams.evaluation(labeled, batch=4)
    assert dataset.cardinality() == 3
    images, labels = map(np.concatenate, zip(*dataset.as_numpy_iterator()))
    np.testing.assert_array_equal(images, labeled.images)
    np.testing.assert_array_equal(labels, labeled.labels)


@pytest.mark.parametrize("side, expected", [(8, 256), (32, 256), (33, 240), (224, 5), (600, 1)])
def test_evaluation_takes_fewer_large_images_at_once(side, expected):
    """As many as have the pixels of 256 images of 32×32."""
    pixels = np.zeros((3, side, side, 1), np.uint8)
    found = examples.Examples(pixels, np.zeros(300, int), np.arange(300) % 3)
    assert len(next(iter(streams.evaluation(found)))[0]) == expected
    of_all = next(iter(streams.evaluation(found, replicas=8)))
    assert len(of_all[0]) == min(8 * expected, 300)


def test_evaluation_of_nothing():
    labeled, _ = parts()
    assert list(streams.evaluation(labeled.take([]))) == []


def test_no_stream_is_autotuned():
    """An iterator that is dropped would wait for the next look of the tuning thread."""
    labeled, unlabeled = parts()
    training = streams.training(labeled, unlabeled, 4, 6, seed=0)
    for dataset in (training, streams.evaluation(labeled)):
        assert dataset.options().autotune.enabled is False


def test_balanced_weights_are_those_of_scikit_learn():
    labels = np.repeat([0, 1, 2], [60, 9, 31])
    expected = class_weight.compute_class_weight("balanced", classes=np.arange(3), y=labels)
    weights = streams.balanced(labels)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    images = np.zeros((100, 2, 2, 1), np.uint8)
    found = examples.Examples(images, labels, None, np.zeros((100, 8), np.uint8))
    plain = streams.training(found, found, 7, 5, seed=3)
    for element, (before, _) in zip(streams.weighted(plain, weights).take(4), plain):
        (_, drawn, weight), unlabeled = element
        np.testing.assert_array_equal(drawn, before[1])
        np.testing.assert_allclose(weight, expected[drawn.numpy()], rtol=1e-6)
        assert unlabeled.shape == (5, 2, 2, 1)
