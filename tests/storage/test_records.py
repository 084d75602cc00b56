"""The one reader of JSON and CSV: whatever is wrong with a file, one message names it."""

import json
import os

import pytest

from rat_tf import errors
from rat_tf.storage import records

CHECKS = {"error": records.share, "names": records.list_of(records.string, "names")}
GOOD = {"error": 0.5, "names": ["a"], "more": None}


def write(tmp_path, content):
    path = tmp_path / "some.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_a_good_object_is_read_whole(tmp_path):
    path = write(tmp_path, json.dumps(GOOD))
    assert records.json_object(path, CHECKS, {"more": records.share_or_null}) == GOOD
    assert records.json_object(path, CHECKS, {"absent": records.whole}) == GOOD


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "not valid JSON"),
        (b'{"error": 0.', "not valid JSON"),
        (b"\xff\xfe{}", r"expected text \(UTF-8\)"),
        (b"\0" * 9, "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", r"expected a JSON object, found \[\]"),
        (b"{}", "expected the field 'error', found none"),
        (json.dumps({"names": ["a"]}), r"expected the field 'error', found \['names'\]"),
        (json.dumps({**GOOD, "error": 1.5}), r"error: expected a number in \[0, 1\], found 1.5"),
        (json.dumps({**GOOD, "error": float("nan")}), "error: .* found nan"),
        (json.dumps({**GOOD, "error": True}), "error: .* found True"),
        (b'{"error": 1' + b"0" * 400 + b"}", "error: .* found 1000"),
        (json.dumps({**GOOD, "names": []}), r"names: expected a list of names, found \[\]"),
        (json.dumps({**GOOD, "names": ["a", 1]}), "names: expected a list of names"),
        (json.dumps({**GOOD, "more": 2}), "more: expected .* or null, found 2"),
    ],
)
def test_any_damage_is_one_short_message_with_the_files_name(tmp_path, content, words):
    path = write(tmp_path, content)
    with pytest.raises(errors.UserError, match=words) as error:
        records.json_object(path, CHECKS, {"more": records.share_or_null}, advice="remove it")
    message = str(error.value)
    assert message.startswith(path) and message.endswith("; remove it")
    assert len(message) < len(path) + 200 and "\n" not in message


def test_what_is_no_file_is_named_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, words in ((".", "found a folder"), ("pipe", "pipe"), ("none", "No such file")):
        with pytest.raises(errors.UserError, match=words):
            records.json_object(str(tmp_path / name), {})


def test_a_table_is_read_without_blanks_and_without_a_cut_line(tmp_path):
    path = write(tmp_path, "step,seconds,error\n1,0.5,\n2,1,nan\n3,1.")
    first, second = records.numbers(path, {"step": records.whole, "seconds": records.seconds})
    assert first == {"step": 1, "seconds": 0.5} and second["error"] != second["error"]
    assert records.numbers(write(tmp_path, ""), {"step": records.whole}) == []


@pytest.mark.parametrize(
    "content, words",
    [
        (b"junk\n", r"its columns: expected 'step', found \['junk'\]"),
        (b"step,error\n1,0.5\n2,zero\n", "row 2: could not convert"),
        (b"step,error\n1\n", "row 1: expected 2 cells, found 1"),
        (b"step,error\n1,2,3\n", "row 1: expected 2 cells, found 3"),
        (b"step,error\n,1\n", "row 1: step: expected a number, found none"),
        (b"step,error\n1.5,1\n", "row 1: step: expected a whole number"),
        (b"step,error\ninf,1\n", "row 1: step: expected a whole number"),
        (b"step,error\n1,\0\n", "row 1"),
        (b'step,error\n"1,2\n', "row 1|its columns"),
        (b"\x89PNG\r\n", "expected text"),
    ],
)
def test_a_damaged_table_is_refused_by_name_and_row(tmp_path, content, words):
    path = write(tmp_path, content)
    with pytest.raises(errors.UserError, match=words) as error:
        records.numbers(path, {"step": records.whole})
    assert str(error.value).startswith(path)
