"""Names made harmless for terminals, Markdown and spreadsheets."""

import pytest

from rat_tf.storage import escapes, files


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ε\n\tü", "plain ε\n\tü"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("a\rb\x9b31m\u202eevil", r"a\rb\x9b31m\u202eevil"),
        ("\udcff", r"\udcff"),
    ],
)
def test_a_terminal_sees_no_control_characters(text, shown):
    assert escapes.printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p < 0.001 & a > b", "p < 0.001 & a > b"),
        ("<script>x</script><!-- -->", "&lt;script>x&lt;/script>&lt;!-- -->"),
        ("[a](javascript:b) [c]", r"[a]\(javascript:b) [c]"),
        ("a|b\n# c\r\nd", r"a\|b # c d"),
    ],
)
def test_markdown_has_no_tags_links_cells_and_lines_of_a_name(text, shown):
    assert escapes.markdown(text) == shown


def test_a_spreadsheet_gets_no_formulas():
    formulas = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")']
    assert [escapes.cell(text) for text in formulas] == ["'" + text for text in formulas]
    numbers = [-1, 1.5, None, "-0.5", "+3", "-1e-6", "-inf", "a=b", "", "−0.5"]
    assert [escapes.cell(value) for value in numbers] == numbers
    text = files.csv_text([{"class": "=1+1", "error": -0.5}], ["class", "error"])
    assert text == "class,error\n'=1+1,-0.5\n"
