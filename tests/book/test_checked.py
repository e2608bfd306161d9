"""The badge "checked by Rocq" stands on a statement of Spec.v that Closed.v proves."""

import re
from dataclasses import replace
from types import SimpleNamespace

import attnbias_checked as extension
import pytest
from attnbias_checked import Checked, CheckedTable, name_of
from docutils import nodes
from generated import SourceError
from reference_statements import BOX, read_statements
from rocq_source import BOX as MODULE
from rocq_source import PROOFS, Spec, named, without_comments
from sphinx_proof.nodes import theorem_node

from tools.chapters import notebook_sources

SPEC = """(** * A title *)
Require Import Reals.
(** ** Numbers *)
(** A half. *)
Definition half (x : R) : R := x / 2.
Module Box.
(** A quarter is less. *)
Definition rate_m1 : Prop := forall x, half (half x) < 1.5 * x.
End Box.
"""
CLOSED = "Theorem rate_m1 : Box.rate_m1.\nProof. exact A.l. Qed.\nPrint Assumptions rate_m1.\n"
TABLE = '[axioms]\na = "words"\n[rate-m1]\npart = "a <part>"\nnote = "read so."\n'


@pytest.fixture(scope="module")
def checked():
    return Checked()


@pytest.fixture
def small(tmp_path):
    source = tmp_path / "checked.toml"

    def read(table=TABLE, spec=SPEC, closed=CLOSED):
        source.write_text(table, encoding="utf8")
        (tmp_path / "Spec.v").write_text(spec, encoding="utf8")
        (tmp_path / "Closed.v").write_text(closed, encoding="utf8")
        return Checked(source, Spec(tmp_path))

    return read


@pytest.fixture(scope="module")
def supposed():
    """What a box supposes, in its own words and in those of the settings it takes."""
    pages = "\n".join(page.read_text(encoding="utf8") for page in notebook_sources())
    boxes = {label: body for _, _, label, body in BOX.findall(pages)}
    taken = re.compile(r"(?:in the setting|conditions) of \{prf:ref\}`([\w-]+)`", re.I)

    def words(label):
        body = boxes.get(label, "")
        return "\n".join([body, *(words(other) for other in taken.findall(body) if other != label)])

    return words


ONE_LENGTH, EXPONENTIAL = "for sequences of one length", "for the exponential loss"


def uses(spec, name):
    """Names of the definitions that a statement is made with."""
    texts, found, waiting = named(spec.text), set(), [name]
    while waiting:
        words = set(re.findall(r"[\w']+", without_comments(texts[waiting.pop()])))
        waiting += words & set(texts) - found
        found |= words & set(texts)
    return found


def overclaims(checked, supposed):
    """Badges that say more than theorems on sequences of one length and on the exponential loss."""
    found = set()
    for label, entry in checked.entries.items():
        model = uses(checked.spec, name_of(label))
        words = supposed(label)
        if re.search(r"unequal lengths|at most \$T\$", words) and ONE_LENGTH not in entry.part:
            found.add((label, ONE_LENGTH))
        if "loss" in model and "exponential" not in f"{words}{entry.part}":
            found.add((label, EXPONENTIAL))
    return found


def lines(kind, state):
    directive = object.__new__(CheckedTable)
    return "\n".join(getattr(directive, kind)(state))


def test_each_label_is_a_box_and_each_statement_is_quoted(checked):
    boxes = read_statements()
    assert len(checked.entries) > 20 and set(checked.entries) <= set(boxes)
    quoted = lines("statements", checked)
    for label in checked.entries:
        assert f"rocq-{label}}}" in quoted and checked.spec.statements[name_of(label)] in quoted


def test_the_page_has_all_of_the_statements_file(checked):
    """But the headings of its chapters, which are the page's own."""
    shown = lines("definitions", checked) + lines("statements", checked)
    squeezed = lambda text: " ".join(text.split())  # noqa: E731
    sentences = re.split(r"\n\n|\n(?=\(\*\*)", checked.spec.text)
    kept = [each for each in sentences if not re.match(r"\(\*\* \*\*|(Module|End) Box", each)]
    assert len(kept) > 60 and [each for each in kept if squeezed(each) not in squeezed(shown)] == []


def test_the_statements_need_no_proof_and_no_other_file():
    bare = without_comments((PROOFS / "Spec.v").read_text(encoding="utf8"))
    assert not re.search(r"\b(Proof|Theorem|Lemma|Qed|Defined|attnbias|Hypothesis|Ltac)\b", bare)
    for path in PROOFS.glob("*.v"):
        others = re.findall(r"\bModule\b.*", without_comments(path.read_text(encoding="utf8")))
        assert others == ([f"Module {MODULE}."] if path.name == "Spec.v" else []), path.name


def test_a_badge_says_for_which_lengths_and_losses(checked, supposed):
    assert overclaims(checked, supposed) == set()


@pytest.mark.parametrize("label", ["rate-m1", "rate-m2", "unequal-rate", "lemma-4"])
def test_a_badge_that_says_too_much_is_found(checked, supposed, label):
    bare = {label: replace(checked.entries[label], part="")}
    state = SimpleNamespace(entries=bare, spec=checked.spec)
    assert {where for where, _ in overclaims(state, supposed)} == {label}


def test_no_set_of_hypotheses_is_empty(checked):
    """Each record of hypotheses, and each kind of run, is met by one of the instances."""
    texts = named(checked.spec.text)
    records = {k for k, text in texts.items() if re.search(r"\bRecord [^{]*: Prop := \{", text)}
    assert records == {"Setting", "NearlyOrthogonal", "UnequalScores", "DualWeights", "Scores"}
    wanted = records | {"Complementary", "Run", "GD", "PolyakRun"}
    concluded = set()
    for stem in ("Pair", "Triples", "Family", "Gradient"):
        for name, text in named((PROOFS / f"{stem}.v").read_text(encoding="utf8")).items():
            if re.search(r"^(Theorem|Lemma)", text, re.M) and (
                stem != "Gradient" or name == "run_exists"
            ):
                said = text.partition("exists ")[2] + text.rpartition("->")[2]
                concluded |= wanted & set(re.findall(r"\w+", said))
    assert wanted - concluded == set()


def test_words_of_the_table_are_plain_where_no_markup_is_read(checked):
    for label, entry in checked.entries.items():
        assert not re.search(r"[$`{}_\\]", entry.part), label
        assert entry.part == entry.part.strip(" .") and (not entry.note or entry.note[-1] == ".")


@pytest.mark.parametrize(
    ("where", "old", "new", "said"),
    [
        ("table", "rate-m1", "rate-m9", "rate-m9"),  # no box
        ("table", "rate-m1", "rate-m2", "rate_m2"),  # a box without a statement
        ("table", "[rate-m1]", "[rate-m1]\n[rate-m2]", "rate_m2"),
        ("table", "part", "parts", "parts"),
        ("spec", "End Box", "Definition rate_m2 : Prop := True.\nEnd Box", "rate_m2"),  # no box
        ("spec", "rate_m1 :", "rate_m1 (x : R) :", "rate_m1"),
        ("spec", "Definition rate_m1", "Theorem rate_m1", "Theorem"),
        ("spec", "End Box.\n", "End Box.\nDefinition more : Prop := True.\n", "more"),
        ("spec", "Module Box", "Module Other", "rate_m1"),
        ("closed", "Box.rate_m1", "Box.rate_m2", "rate_m1"),
        ("closed", "Box.rate_m1", "forall x, Box.rate_m1", "rate_m1"),
        ("closed", "Theorem rate_m1", "Theorem other", "rate_m1"),
        ("closed", "Theorem rate_m1", "Definition rate_m1", "rate_m1"),
        (
            "closed",
            "Theorem rate_m1 : Box.rate_m1.",
            "(* Theorem rate_m1 : Box.rate_m1. *)",
            "rate",
        ),
        ("closed", "Print Assumptions rate_m1.", "", "assumptions printed"),
        ("closed", "Theorem", "Section S.\nHypothesis h : False.\nTheorem", "rate_m1"),
        ("closed", "Print", "Theorem m : Box.m.\nPrint Assumptions m.\nPrint", "each theorem"),
    ],
)
def test_a_gap_between_the_three_lists_is_refused(small, where, old, new, said):
    texts = {"table": TABLE, "spec": SPEC, "closed": CLOSED}
    assert list(small(**texts).entries) == ["rate-m1"] and old in texts[where]
    with pytest.raises(SourceError, match=said):
        small(**texts | {where: texts[where].replace(old, new, 1)})


def test_a_statement_is_shown_below_its_comment(small):
    shown = lines("statements", small())
    assert "In part: a <part>.\nread so." in shown
    assert "(** A quarter is less. *)\nDefinition rate_m1 : Prop" in shown
    assert "half (half x) < 1.5 * x.\n```" in shown and "x / 2" not in shown


def test_definitions_are_shown_under_their_headings(small):
    shown = lines("definitions", small())
    assert "{dropdown} Numbers\n" in shown and "(** A half. *)\nDefinition half" in shown
    assert "A title" in shown and "rate_m1" not in shown


def test_two_readings_give_the_same_page(checked):
    again = Checked()
    for kind in ("statements", "definitions", "axioms"):
        assert lines(kind, checked) == lines(kind, again)


def test_comments_are_blanked_in_place():
    text = 'a (* b (* c *) "*)" *) "(*" d\n(* e\n*) f'
    bare = without_comments(text)
    assert len(bare) == len(text) and bare.split() == ["a", "d", "f"]
    assert [at for at, c in enumerate(bare) if c == "\n"] == [
        at for at, c in enumerate(text) if c == "\n"
    ]


def test_a_box_ends_with_its_badge(small):
    state, seen = small(), []
    env = SimpleNamespace(note_dependency=seen.append)
    app = SimpleNamespace(attnbias_checked=state, env=env)
    known, unknown = (theorem_node(label=label) for label in ("rate-m1", "rate-m9"))
    document = nodes.section("", known, unknown)
    for box in (known, unknown):
        box += nodes.section("", nodes.paragraph(text="words"))
    extension.mark_boxes(app, document)
    assert len(known[0]) == 2 and len(unknown[0]) == 1 and seen == [str(extension.SOURCE)]
    badge = known[0][-1][0]
    builder = SimpleNamespace(current_docname="book/x", get_relative_uri=lambda here, there: there)
    translator = SimpleNamespace(builder=builder, body=[])
    with pytest.raises(nodes.SkipNode):
        extension.visit_html(translator, badge)
    html = "".join(translator.body)
    assert 'href="book/checked#rocq-rate-m1"' in html and "in part: a &lt;part&gt;." in html
    assert html.endswith(">checked by Rocq</a>: a &lt;part&gt;")
