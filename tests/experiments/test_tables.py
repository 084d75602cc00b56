"""Tables as text: nothing that a cell holds can break the table around it."""

from rat_tf.experiments import comparison, tables

ODD = tables.Table(
    title="a < b",
    header=("Method", "Error"),
    rows=(("RAT (x=1|2) <i>", "3.50 ± 0.50"), ("100 % of_it & more", "−1.00")),
    bold=frozenset({(0, 1)}),
    notes=("α < 1",),
)


def test_markdown():
    lines = tables.markdown(ODD).splitlines()
    assert lines[:4] == ["### a < b", "", "| Method | Error |", "| --- | --- |"]
    assert lines[4] == r"| RAT (x=1\|2) &lt;i> | **3.50 ± 0.50** |"


def test_latex():
    lines = tables.latex(ODD).splitlines()
    assert r"  RAT (x=1|2) $<$i> & \textbf{3.50 $\pm$ 0.50} \\" in lines
    assert r"  100 \% of\_it \& more & $-$1.00 \\" in lines
    assert r"\caption{a $<$ b. $\alpha$ $<$ 1}" in lines


def test_html():
    text = tables.html_table(ODD)
    assert "<td>RAT (x=1|2) &lt;i&gt;</td><td><b>3.50 ± 0.50</b></td>" in text
    assert "<td>100 % of_it &amp; more</td>" in text and "α &lt; 1" in text


def test_letters_do_not_end():
    lines = [comparison.Line("RAT", 1, None, None, unlike=(f"--seed={i}",)) for i in range(53)]
    table = tables.table(comparison.Section("many", lines))
    for count, letter in ((0, "a"), (25, "z"), (26, "aa"), (51, "az"), (52, "ba")):
        assert table.rows[count][0] == f"RAT [{letter}]"
        assert table.notes[1 + count] == f"[{letter}] not the paper's protocol: --seed={count}"


def test_a_note_explains_only_what_the_table_has():
    section = comparison.Section("none", [comparison.Line("RAT", 250, None, None)])
    assert tables.table(section).notes == ("Test error in %.",)


def test_one_number_of_labels_needs_no_overview():
    lines = [comparison.Line(name, 250, None, None) for name in ("RAT", "VAT")]
    assert tables.overview(comparison.Section("few", lines)) is None
