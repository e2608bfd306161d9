"""The badge "checked by Rocq" stands on a theorem that is there, and the page quotes the files."""

import re
from dataclasses import replace
from types import SimpleNamespace

import attnbias_checked as extension
import pytest
from attnbias_checked import Checked, CheckedTable
from docutils import nodes
from generated import SourceError
from reference_statements import BOX, read_statements
from rocq_source import STATED, File, Proofs, without_comments
from sphinx_proof.nodes import theorem_node

from tools.chapters import notebook_sources

FILE = """(** * A title

    - [l]: what it says. *)
Definition half (x : R) : R := x / 2. Definition other : R := 7.
Section S.
Variable x : R. (* not a Theorem gone : False. *)
Hypothesis h : 0 < x.
Notation y := (half x). Notation unused := (other).
(** A quarter is less. *)
Lemma l : forall other, other = 0 -> half (half x) < 1.5 * x.
Proof. intros. Lemma inner : True. Qed.
End S.
Theorem free : half 1 < 1.
Proof. Admitted. Qed.
Print Assumptions l. Print Assumptions
  missing.
Print Assumptions free.
"""
TABLE = '[axioms]\na = "words"\n[rate-m1]\nproved = ["A.l"]\npart = "a <part>"\nnote = "read so."\n'


@pytest.fixture(scope="module")
def checked():
    return Checked()


@pytest.fixture
def small(tmp_path):
    (tmp_path / "A.v").write_text(FILE, encoding="utf8")
    (tmp_path / "B.v").write_text(
        "From attnbias Require Import A.\nTheorem b : other = 7.\nPrint Assumptions b.\n"
    )
    (tmp_path / "_CoqProject").write_text("-Q . attnbias\nA.v\nB.v\n")
    source = tmp_path / "checked.toml"

    def read(table=TABLE):
        source.write_text(table, encoding="utf8")
        return Checked(source, Proofs(tmp_path))

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


def overclaims(checked, supposed):
    """Badges that say more than theorems on sequences of one length and on the exponential loss."""
    found = set()
    for label, entry in checked.entries.items():
        model = {each.name for each in checked.proofs.used(entry.proved).get("Model", [])}
        words = supposed(label)
        if re.search(r"unequal lengths|at most \$T\$", words) and ONE_LENGTH not in entry.part:
            found.add((label, ONE_LENGTH))
        if "loss" in model and "exponential" not in f"{words}{entry.part}":
            found.add((label, EXPONENTIAL))
    return found


def lines(kind, state):
    directive = object.__new__(CheckedTable)
    return "\n".join(getattr(directive, kind)(state))


def test_each_label_is_a_box_and_each_theorem_is_in_its_file(checked):
    boxes = read_statements()
    assert len(checked.entries) > 20 and set(checked.entries) <= set(boxes)
    for full in checked.names:
        stem, _, name = full.partition(".")
        assert re.search(rf"^(Theorem|Lemma) {name}\b", checked.proofs.files[stem].text, re.M)
    quoted = lines("statements", checked)
    assert all(f"rocq-{label}}}" in quoted for label in checked.entries)
    assert all(checked.proofs.stated(full).text in quoted for full in checked.names)


def test_a_badge_says_for_which_lengths_and_losses(checked, supposed):
    assert overclaims(checked, supposed) == set()


@pytest.mark.parametrize("label", ["rate-m1", "rate-m2", "unequal-rate", "theorem-1", "lemma-4"])
def test_a_badge_that_says_too_much_is_found(checked, supposed, label):
    bare = {label: replace(checked.entries[label], part="")}
    state = SimpleNamespace(entries=bare, proofs=checked.proofs)
    assert {where for where, _ in overclaims(state, supposed)} == {label}


def test_no_set_of_hypotheses_is_empty(checked):
    """Each record of hypotheses, and each kind of run, is met by the pair or the triples."""
    records = {
        each.name
        for found in checked.used.values()
        for each in found
        if each.kind == "Record" and re.search(r":\s*Prop\s*:=", each.bare)
    }
    wanted = records | {"Complementary", "Run", "GD", "PolyakRun"}
    assert {"Setting", "NearlyOrthogonal", "UnequalScores", "KKT"} <= records
    files = checked.proofs.files
    stated = [
        *files["Pair"].sentences,
        *files["Triples"].sentences,
        *(each for each in files["Gradient"].sentences if each.name == "run_exists"),
    ]
    concluded = set()
    for each in stated:
        if each.kind in STATED:
            said = each.bare.partition("exists ")[2] + each.bare.rpartition("->")[2]
            concluded |= wanted & set(re.findall(r"\w+", said))
    assert wanted - concluded == set()


def test_words_of_the_table_are_plain_where_no_markup_is_read(checked):
    for label, entry in checked.entries.items():
        assert not re.search(r"[$`{}_\\]", entry.part), label
        assert entry.part == entry.part.strip(" .") and (not entry.note or entry.note[-1] == ".")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate-m1", "rate-m9", "rate-m9"),
        ("A.l", "A.ll", "A.ll"),
        ("A.l", "C.l", "C.l"),
        ("A.l", "l", "got l"),
        ("A.l", "A.half", "A.half"),  # a definition
        ("A.l", "A.inner", "A.inner"),  # inside a proof
        ("A.l", "A.gone", "A.gone"),  # in a comment
        ('"A.l"', "", "rate-m1"),
        ("part", "parts", "parts"),
    ],
)
def test_a_broken_entry_is_refused(small, old, new, said):
    assert list(small().entries) == ["rate-m1"]
    with pytest.raises(SourceError, match=said):
        small(TABLE.replace(old, new, 1))


def test_a_theorem_whose_assumptions_nobody_printed_is_refused(small, tmp_path):
    small()
    (tmp_path / "A.v").write_text(FILE.replace("Print Assumptions l.", ""), encoding="utf8")
    with pytest.raises(SourceError, match="assumptions are printed; got A.l"):
        small()


def test_a_statement_is_shown_with_what_its_section_assumes(small):
    shown = lines("statements", small())
    assert shown.count("{code-block} coq") == 1 and "In part: a <part>.\nread so." in shown
    for line in (
        "Variable x : R.",
        "Hypothesis h : 0 < x.",
        "(** A quarter is less. *)",
    ):
        assert shown.count(line) == 1
    assert "half (half x) < 1.5 * x." in shown and "Notation" not in shown
    assert not re.search("Proof|unused|gone|inner|free", shown)
    free = lines("statements", small(TABLE.replace("A.l", "A.free")))
    assert "Theorem free : half 1 < 1." in free and "Hypothesis" not in free


def test_the_definitions_that_a_statement_uses_are_shown(small):
    shown = lines("files", small())
    assert "Definition half" in shown and "other" not in shown  # `other` is bound in l
    assert "]{#rocq-file-a}: A title." in shown and "\n- [l]: what it says.\n" in shown
    imported = small(TABLE.replace("A.l", "B.b")).used
    assert [[each.name for each in found] for found in imported.values()] == [["other"]]


def test_every_statement_of_the_proofs_is_read(checked):
    for file in checked.proofs.files.values():
        stated = re.findall(r"^(?:Theorem|Lemma) ([\w']+)", without_comments(file.text), re.M)
        assert stated == [each.name for each in file.sentences if each.kind in STATED]
        assert all(each.text in file.text for each in file.sentences)


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


def test_a_file_without_a_head_or_imports_is_read(tmp_path):
    path = tmp_path / "C.v"
    path.write_text("Lemma c : True.\n")
    assert (File(path).head, File(path).imports, File(path).asked()) == ("", [], set())
