"""Symbols and terms: their one source, which formulas hold them, and what the build refuses."""

from dataclasses import replace
from types import SimpleNamespace

import attnbias_notation
import pytest
from docutils import nodes
from docutils.utils import new_document
from notation_source import SOURCE, Entry, disagreements, read_notation, symbols_in, to_html, tokens
from sphinx.errors import ExtensionError

from tools.files import ROOT

TEXT = SOURCE.read_text(encoding="utf8")
PAGE = "book/paper/master"


@pytest.fixture(scope="module")
def notation():
    return read_notation()


def forms_of(notation, page=PAGE):
    entries = [entry for entry in notation.symbols if entry.holds_on(page)]
    return {tokens(form): entry.id for entry in entries for form in entry.tex}


def test_each_symbol_and_term_says_what_it_means_and_where(notation):
    for entry in (*notation.symbols, *notation.terms):
        assert entry.means and len(entry.means) < 200, entry.id
        assert not entry.means.endswith("."), entry.id  # the page and the card end it
        assert entry.means.count("$") % 2 == 0, entry.id
        assert (ROOT / f"{notation.places[entry.place].page}.md").is_file()
    assert {entry.provenance[0] for entry in notation.symbols} == {"a", "b", "c", "d"}
    page = (ROOT / "book/notation.md").read_text(encoding="utf8")
    for group in {entry.group for entry in notation.symbols}:
        assert page.count(f"```{{symbols}} {group}\n") == 1, group
    assert page.count("```{terms}\n") == 1


BROKEN = {
    "a symbol of Table 1 without an entry": ("'\\Xi', '\\m", "'\\Xi', '\\Xi_7', '\\m"),
    "an entry whose symbol was renamed": ("tex = ['\\Xi']", "tex = ['\\Xi_7']"),
    "a symbol's place that no chapter has": ('place = "w-svm"', 'place = "w-svn"'),
    "a term's place that no chapter has": ('place = "score-trap"', 'place = "score-trip"'),
    "two entries of one name": ('id = "xi"', 'id = "w-mm"'),
    "names that differ by a capital alone": ('id = "xi"', 'id = "W-MM"'),
    "two meanings in one chapter": (
        'only = ["joint_setup", "joint_loss", "figure3"]',
        'only = ["gaussian_tokens", "joint_setup", "joint_loss", "figure3"]',
    ),
    "a letter that a cited box means otherwise": (
        'only = ["bounds", "your_model", "exponents", "momentum"]',
        'only = ["bounds", "exponents", "momentum"]',
    ),
    "a shared letter without an entry": ("dummies = ['e', 'O', ", "dummies = ['e', "),
    "a group that the page does not show": ('group = "scores"', 'group = "scars"'),
    "a field that nothing reads": ('code = "data.n"', 'coda = "data.n"'),
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda name: name.replace(" ", "-"))
def test_the_build_refuses(broken, tmp_path):
    old, new = BROKEN[broken]
    assert old in TEXT
    source = tmp_path / "notation.toml"
    source.write_text(TEXT.replace(old, new), encoding="utf8")
    with pytest.raises(ExtensionError, match="notation.toml: expected"):
        read_notation(source)


BOX = "```{prf:lemma} Growth\n:label: growth\n\nThe gap grows by $\\rho$ a step.\n```\n"
CITING = "By {prf:ref}`growth` the norm $\\rho$ of the offset"
MEANING = {
    "both say the same": (["here", "there"], BOX, CITING, (0, 0)),
    "the chapter means something else": (["there"], BOX, CITING, (1, 0)),
    "the box means something else": (["here"], BOX, CITING, (1, 0)),
    "neither says what it means": ([], BOX, CITING, (0, 1)),
    "another letter with an index": (["there"], BOX, CITING.replace("rho", "rho_i"), (0, 0)),
    "the letter in code": (
        ["there"],
        BOX,
        "```{code-cell}\n$\\rho$\n```\n{prf:ref}`growth`",
        (0, 0),
    ),
    "a chapter that does not cite": (["there"], BOX, "The norm $\\rho$", (0, 0)),
    "an equation": (["there"], "$$\nS = \\rho\n$$ (eq-s)\n", "In {eq}`eq-s` $\\rho$", (1, 0)),
    "an equation named above": (
        ["there"],
        "(eq-s)=\n$$\nS = \\rho\n$$\n",
        "[(1)](#eq-s), $\\rho$",
        (1, 0),
    ),
}


@pytest.mark.parametrize("case", MEANING, ids=lambda name: name.replace(" ", "-"))
def test_a_chapter_and_the_boxes_that_it_cites_agree_on_a_letter(case):
    only, box, citing, counts = MEANING[case]
    entry = Entry("sym-rho", "a norm", "growth", tex=(r"\rho",), only=tuple(only))
    found = disagreements((entry,), {"book/there": box, "book/here": citing}, [])
    assert tuple(map(len, found.values())) == counts, found


def test_two_boxes_with_one_letter_are_refused():
    """Each chapter's own meaning of a letter has an entry; one cites the other's box."""
    far = "```{prf:lemma} Step\n:label: step\n\nA step is $\\rho$ long, {prf:ref}`growth`.\n```\n"
    entries = (
        Entry("sym-norm", "a norm", "growth", tex=(r"\rho",), only=("there",)),
        Entry("sym-step", "a length", "step", tex=(r"\rho",), only=("here",)),
    )
    found = disagreements(entries, {"book/there": BOX, "book/here": far}, [])
    assert [one for rule in found.values() for one in rule] == [r"book/here: \rho of growth"]


STIFFNESS = r"""
The *stiffnesses* $\kappa$ are $\Xi$ times the eigenvalues of $A^{1/2}KA^{1/2}$.
The proofs of {prf:ref}`rate-m1` and {prf:ref}`rate-m2` use these two bounds and nothing else of
$p$, so they hold for $Z_t$ with $\kappa e^{4B^2R}$ in place of $\kappa$.
"""  # the chapter Momentum had these sentences, and `never = ["momentum"]` stood in the entry


def test_the_two_kappas_of_momentum_are_refused(notation):
    symbols = notation.symbols
    page, rates = "book/beyond/momentum", "book/paper/bounds"
    chapters = {page: STIFFNESS, rates: (ROOT / f"{rates}.md").read_text(encoding="utf8")}
    kappa = next(entry for entry in symbols if entry.id == "sym-kappa")
    others = tuple(entry for entry in symbols if entry is not kappa)
    own = replace(kappa, never=("momentum",))
    two = "one meaning of a symbol in a chapter and in the boxes that it cites"
    letter = rf"{page}: \kappa of rate-m1"
    assert letter in disagreements((*others, own), chapters, [])[two]
    # With kappa the ratio there as everywhere, its other guest gives the old text away.
    assert disagreements(symbols, chapters, [])[two] == [f"{page}: A of rate-m1"]


FOUND = {
    "W_{mm}": ["w-mm"],
    r"\Xi = 1/\|W_{mm}\|": ["xi", "w-mm"],
    r"\gamma_{it}": ["gamma-token"],
    r"\varphi_{i, \tau}": ["phi-token"],
    r"W_0^\perp": ["w-0-perp"],
    r"\bar W_{mm}": ["w-mm-bar"],
    r"L - L^*": ["loss", "loss-infimum"],
    r"u^\top x_{i,1}": ["u", "x-query"],
}
# Other symbols that only begin, or sound, like one of the table.
OTHERS = [
    "W_7",
    "W'",
    r"\bar W",
    r"\etaz",
    r"\text{the tuna}",
    "M_{W}",
    r"\begin{pmatrix}1\end{pmatrix}",
]


@pytest.mark.parametrize("formula", [*FOUND, *OTHERS])
def test_symbols_are_found_in_a_formula(notation, formula):
    found = [f"sym-{name}" for name in FOUND.get(formula, ())]
    assert symbols_in(formula, forms_of(notation)) == found


def test_a_letter_has_the_meaning_of_its_chapter(notation):
    pages = {"book/paper/joint_setup": ["sym-alpha-dm"], "book/beyond/global": []}
    for page, found in pages.items():  # a selection of tokens there
        assert symbols_in(r"\alpha", forms_of(notation, page)) == found


def explained(notation, document, page=PAGE):
    """The document with what the transform puts round its symbols and terms."""
    builder = SimpleNamespace(get_relative_uri=lambda here, there: "../notation.html")
    app = SimpleNamespace(builder=builder, attnbias_notation=notation)
    document.settings.env = SimpleNamespace(docname=page, app=app)
    attnbias_notation.Explain(document).run()
    return [node.attributes for node in document.findall(attnbias_notation.SymbolNode)]


def paragraph(*parts):
    document = new_document(PAGE)
    document += nodes.paragraph("", "", *parts)
    return document


def test_the_first_use_of_a_symbol_is_a_link(notation):
    document = paragraph(nodes.math("", "W_{mm}"), nodes.math("", "W_{mm}"), nodes.math("", "v"))
    first, second = explained(notation, document)
    assert first["uri"] == "../notation.html#sym-w-mm"
    assert "uri" not in second and second["entries"] == ["sym-w-mm"]
    assert document["symbols"] == ["sym-w-mm"]
    # those of a displayed formula are on the card of the page
    document = paragraph(nodes.Text("So"))
    document += nodes.math_block("", r"\Xi = 1")
    assert explained(notation, document) == []
    assert document["symbols"] == ["sym-xi"]


def test_the_first_use_of_a_term_is_a_link(notation):
    document = paragraph(nodes.Text("Support tokens hold it; support tokens do."))
    (only,) = explained(notation, document)
    assert only["uri"] == "../notation.html#term-support-token"
    assert document.astext() == "Support tokens hold it; support tokens do."
    # a link's name, in plain letters
    said = {r"W_{mm}": "W_mm", r"\Xi": "Xi", r"\|\nabla L\|": "|nabla L|", "a<b": "a&lt;b"}
    assert {tex: attnbias_notation.spelt(tex) for tex in said} == said


OTHER_WORDS = "by a wide margin", "the softmax score", "the key-query matrix", "the scoreboard"


def test_other_words_are_left_alone(notation):
    marked = [nodes.literal("", "margin"), nodes.strong("", "margin")]
    marked.append(nodes.reference("", "margin", refuri="x"))
    for part in [*map(nodes.Text, OTHER_WORDS), *marked]:
        assert explained(notation, paragraph(part)) == [], part


def test_where_a_term_is_defined_and_where_all_are_it_is_no_link(notation):
    document = paragraph(nodes.Text("the margin"))
    assert explained(notation, document, notation.places["w-svm"].page) == []
    document = paragraph(nodes.math("", "W_{mm}"), nodes.Text("the margin"))
    assert explained(notation, document, "book/notation") == []


def test_a_card_is_one_line_and_a_link(notation):
    entry = next(entry for entry in notation.symbols if entry.id == "sym-xi")
    markup = attnbias_notation.card(entry, notation, lambda page: f"{page}.html")
    assert markup.startswith(
        '<dt><span class="math notranslate nohighlight">\\(\\Xi\\)</span></dt>'
    )
    assert '<a href="book/paper/attention_svm.html#w-svm">' in markup
    assert to_html("$a < b$ & c") == (
        '<span class="math notranslate nohighlight">\\(a &lt; b\\)</span> &amp; c'
    )
