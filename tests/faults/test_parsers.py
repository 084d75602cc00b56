"""Any input to a parser gives a value that it writes back, or the error for a user's mistake.

HYPOTHESIS_EXAMPLES sets the number of inputs of each test; the suite takes a few.
"""

import json
import math
import os

import hypothesis
import pytest
from hypothesis import strategies as st

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import flag_values, ranges
from rat_tf.data import image_files, splits
from rat_tf.experiments import plan
from rat_tf.storage import records
from rat_tf.transforms import spec
from rat_tf.tuning import search_space
from tests.data import pictures

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", 40))
hypothesis.settings.register_profile(
    "faults",
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=EXAMPLES < 100,  # the same inputs in every run of the suite
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("faults")

#: Text with the signs that the grammars use, so that it comes close to them.
signs = st.sampled_from(
    [*":,;|=.%-#\n\0 \t", "..", "log", "eps", "0", "1", "-1", "1e9", "nan", "inf"]
)
names = st.sampled_from(
    [*spec.NAMES, *spec.ALIASES, *config_lib.FLAGS, "epsilon.affine", "--", "/"]
)
near = st.lists(
    st.one_of(signs, names, st.floats().map(str), st.text(max_size=3)), max_size=12
).map("".join)
texts = st.one_of(near, st.text(max_size=30))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@hypothesis.given(texts)
def test_transforms(text):
    try:
        found = spec.Spec.parse(text)
    except ValueError as error:
        assert "expected" in str(error)
        return
    assert all(0 < epsilon < spec.LIMIT for _, epsilon in found.parts)
    assert spec.Spec.parse(str(found)) == found


@hypothesis.given(texts)
def test_xi(text):
    try:
        found = spec.Xi.parse(text)
    except ValueError as error:
        assert "expected" in str(error)
        return
    assert 0 < found.value < spec.LIMIT and spec.Xi.parse(str(found)) == found


@hypothesis.given(texts, st.sampled_from(["int", "float", "bool", "str"]))
def test_values_of_vary_and_search(text, kind):
    try:
        found = ranges.parse("--vary", "x", text, kind)
    except errors.UserError as error:
        assert str(error).startswith("--vary: expected ")
        return
    assert len(found.values) <= ranges.MAX_VALUES
    assert found.values or found.low < found.high
    for value in found.values:
        ranges.convert(value, kind)


@hypothesis.given(texts, texts)
def test_vary_and_seeds(vary, seeds):
    try:
        found = plan.axes([vary], seeds)
    except errors.UserError as error:
        assert str(error).startswith(("--vary: ", "--seeds: "))
        return
    assert all(name in config_lib.FLAGS and listed for name, listed in found.items())


BASE = config_lib.Config(
    dataset="digits", labels=20, network="tiny", iterations=8, validate_every=8
)


@hypothesis.given(texts, st.sampled_from(["grid", "random", "hyperband"]))
def test_search(text, tuner):
    try:
        space = search_space.parse(text, BASE, tuner)
    except errors.UserError as error:
        assert str(error).startswith("--search: "), error
        return
    assert space.size() > 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parsers")


lines = st.one_of(
    st.sampled_from(["--seed=1", "--flagfile=x.cfg", "# ü", "", "--noaugment_flip", "--labels 5"]),
    st.tuples(st.sampled_from(list(config_lib.FLAGS)), texts).map("--{0[0]}={0[1]}".format),
    texts,
)
contents = st.one_of(
    st.binary(max_size=40),
    st.lists(lines, max_size=5)
    .map("\n".join)
    .map(lambda text: text.encode(errors="surrogatepass")),
)


@hypothesis.given(content=contents)
def test_flagfiles(folder, content):
    path = folder / "x.cfg"
    path.write_bytes(content)
    try:
        config = flag_values.config_of_file(str(path))
    except errors.UserError as error:
        assert str(error)
        return
    path.write_text(config.flagfile(), encoding="utf-8")
    written = flag_values.config_of_file(str(path), run_dir=config.run_dir)  # fits any folder
    assert written == config


@hypothesis.given(content=st.one_of(st.binary(max_size=60), values.map(json.dumps).map(str.encode)))
def test_split_files(folder, content):
    path = folder / "split.json"
    path.write_bytes(content)
    with pytest.raises(errors.UserError, match="^--split_file: .*split.json"):
        splits.read(str(path))


@hypothesis.given(
    validation=values, labeled=st.lists(st.integers()), unlabeled=values, digest=values
)
def test_split_files_of_the_right_form(folder, **fields):
    path = folder / "split.json"
    path.write_text(json.dumps({"hash": fields.pop("digest"), **fields}))
    try:
        found = splits.read(str(path))
    except errors.UserError as error:
        assert str(path) in str(error)
        return
    assert found.labeled.tolist() == fields["labeled"] and isinstance(found.hash, str)


CHECKS = {"error": records.share, "step": records.whole, "name": records.string}


@hypothesis.given(
    st.one_of(
        st.binary(max_size=60),
        st.fixed_dictionaries(dict.fromkeys(CHECKS, scalars)).map(json.dumps).map(str.encode),
        values.map(json.dumps).map(str.encode),
    )
)
def test_json_of_a_run_folder(folder, content):
    path = folder / "result.json"
    path.write_bytes(content)
    try:
        found = records.json_object(str(path), CHECKS)
    except errors.UserError as error:
        assert str(path) in str(error)
        return
    assert 0 <= found["error"] <= 1 and found["step"] >= 0 and isinstance(found["name"], str)


@hypothesis.given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.lists(st.one_of(st.floats().map(str), texts), max_size=3).map(",".join))
        .map(lambda rows: "\n".join(["step,error", *rows, ""]))
        .map(lambda text: text.encode(errors="surrogatepass")),
    )
)
def test_tables_of_a_run_folder(folder, content):
    path = folder / "metrics.csv"
    path.write_bytes(content)
    try:
        rows = records.numbers(str(path), {"step": records.whole})
    except errors.UserError as error:
        assert str(path) in str(error)
        return
    assert all(math.isfinite(row["step"]) for row in rows)


KINDS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
FILES = [pictures.file(pictures.picture(pictures.smooth()), kind) for kind in KINDS]
FILES += [pictures.file(pictures.palette(pictures.smooth()), kind) for kind in ("PNG", "BMP")]
FILES += [pictures.file(pictures.picture(pictures.smooth()), k, 6) for k in ("PNG", "JPEG")]


@hypothesis.given(st.data())
def test_image_files(data):
    """Bytes of any kind, and whole files with some bytes changed or cut off."""
    whole = bytearray(data.draw(st.sampled_from(FILES)))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    content = data.draw(st.sampled_from([bytes(whole), bytes(whole[:end]), bytes(whole[end:])]))
    try:
        image = image_files.decode(content)
    except image_files.Unusable as error:
        assert str(error).startswith("expected ")
        return
    assert image.dtype == "uint8" and image.ndim == 3 and image.shape[-1] in (1, 2, 3, 4)
