"""The book's own Sphinx extension: whose repository a clone is, badges, and line breaks."""

import re
import subprocess
from types import SimpleNamespace

import attnbias_book as extension
import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx.application import Sphinx
from sphinx_book_theme.header_buttons import launch as theme_launch

from tools.chapters import ROOT, notebook_sources
from tools.origin import github_address, launch_ref


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True)


def clone_with_origin(folder, origin):
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", origin)


ADDRESS = "https://github.com/someone/a-book"
OURS = [
    ADDRESS,
    f"{ADDRESS}.git",
    "https://name:secret@github.com/someone/a-book.git",
    "git@github.com:someone/a-book.git",
    "ssh://git@github.com/someone/a-book.git",
]
OTHERS = ["/some/folder", "https://git.example.org/someone/a-book.git"]


@pytest.mark.parametrize("origin", OURS + OTHERS)
def test_a_github_origin_gives_the_repository_and_no_secret(tmp_path, origin):
    clone_with_origin(tmp_path, origin)
    assert github_address(tmp_path) == (ADDRESS if origin in OURS else None)


def test_a_launch_takes_the_tag_on_the_release_and_the_branch_elsewhere(tmp_path):
    assert launch_ref(tmp_path, "1.2.3") == "main"  # no repository at all
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "release")
    assert launch_ref(tmp_path, "1.2.3") == "main"
    git(tmp_path, "tag", "v1.2.3")
    assert launch_ref(tmp_path, "1.2.3") == "v1.2.3"
    assert launch_ref(tmp_path, "1.2.4") == "main"
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "later")
    assert launch_ref(tmp_path, "1.2.3") == "main"


def configure(folder):
    """The theme's options after the extension has set them for a repository in `folder`."""
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    config = SimpleNamespace(html_theme_options={"repository_url": "left over"})
    extension.add_launch_buttons(SimpleNamespace(srcdir=folder), config)
    return config.html_theme_options


def launch(options):
    """The addresses that the theme's buttons of a chapter then have, by their text."""
    page = "book/paper/attention_layer"
    app = SimpleNamespace(
        config={"html_theme_options": options},
        env=SimpleNamespace(doc2path=lambda name: str(ROOT / f"{name}.md"), metadata={page: {}}),
    )
    app.env.metadata[page]["kernelspec"] = {"name": "python3"}
    context = {"pagename": page, "sourcename": f"{page}.txt", "header_buttons": []}
    context |= {"github_url": "https://github.com"}
    context |= {"github_user": "someone", "github_repo": "a-book"}
    theme_launch.add_launch_buttons(app, page, "page.html", context, None)
    groups = [group["buttons"] for group in context["header_buttons"]]
    return {button["text"]: button["url"] for group in groups for button in group}


def test_the_buttons_open_the_notebook_beside_the_page(tmp_path):
    clone_with_origin(tmp_path, "git@github.com:someone/a-book.git")
    options = configure(tmp_path)
    assert options["repository_url"] == ADDRESS
    notebook = "book/paper/attention_layer.ipynb"
    assert launch(options) == {
        "Binder": f"https://mybinder.org/v2/gh/someone/a-book/main?urlpath=lab/tree/{notebook}",
        "Colab": f"https://colab.research.google.com/github/someone/a-book/blob/main/{notebook}",
    }


def test_without_an_origin_there_are_no_buttons(tmp_path):
    git(tmp_path, "init", "-q")
    options = configure(tmp_path)
    assert options == {"launch_buttons": {}}
    assert launch(options) == {}


def test_a_chapter_offers_its_notebook_and_another_page_none():
    app, context = SimpleNamespace(srcdir=ROOT), {}
    extension.complete_page(app, "book/api", "page.html", context, None)
    assert context == {}
    for source in notebook_sources():
        page = source.relative_to(ROOT).with_suffix("").as_posix()
        extension.complete_page(app, page, "page.html", context, None)
        assert context == {"ipynb_source": f"{page}.ipynb"}


def test_the_notebooks_are_copied_to_where_the_menu_links_to(tmp_path):
    chapter = "book/paper/attention_layer"
    app = SimpleNamespace(
        srcdir=ROOT,
        outdir=tmp_path,
        builder=SimpleNamespace(format="html"),
        env=SimpleNamespace(found_docs={chapter, "book/api"}),
    )
    extension.copy_notebooks(app, RuntimeError("a failed build"))
    assert list(tmp_path.iterdir()) == []
    extension.copy_notebooks(app, None)
    copies = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert copies == [tmp_path / "_sources" / f"{chapter}.ipynb"]
    assert copies[0].read_bytes() == (ROOT / f"{chapter}.ipynb").read_bytes()


def test_what_a_note_numbers_cannot_be_taken_for_the_papers_figures():
    figures = {"book/paper/figure2": {"figure": {"fig-a": (5, 1)}}}
    figures["book/answers"] = {"figure": {"fig-b": (1,), "fig-c": (2,)}, "theorem": {"t": (7,)}}
    figures["book/one_sequence"] = {"figure": {"fig-d": (3,)}}
    env = SimpleNamespace(toc_fignumbers=figures, toc_secnumbers={"book/paper/figure2": {"": (5,)}})
    changed = extension.number_notes(SimpleNamespace(srcdir=ROOT), env)
    assert changed == ["book/answers", "book/one_sequence"]
    assert figures == {
        "book/paper/figure2": {"figure": {"fig-a": (5, 1)}},
        "book/answers": {
            "figure": {"fig-b": ("N1", 1), "fig-c": ("N1", 2)},
            "theorem": {"t": ("N1", 1)},
        },
        "book/one_sequence": {"figure": {"fig-d": ("N2", 1)}},
    }


W = nodes.math("", "W")


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        ([W, nodes.Text(", and so on")], ["W,", " and so on"]),
        ([W, nodes.Text(").")], ["W).", ""]),
        ([W, nodes.Text(" on")], ["W", " on"]),
        ([W, nodes.Text("-axis")], ["W", "-axis"]),
        ([W], ["W"]),
        ([nodes.Text("so ("), W, nodes.Text(") it")], ["so ", "(W)", " it"]),
        ([nodes.Text("so (the "), W, nodes.Text(" on")], ["so (the ", "W", " on"]),
        # each formula keeps its own full stop
        ([nodes.strong("", "a"), nodes.Text("."), W, nodes.Text(".")], ["a", ".", "W.", ""]),
    ],
)
def test_punctuation_stays_with_its_formula(parts, after):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", *(part.deepcopy() for part in parts))
    document += paragraph
    extension.KeepPunctuation(document).run()
    assert [child.astext() for child in paragraph] == after
    kept = [each.astext() for each in paragraph.findall(nodes.inline)]
    assert kept == [text for text in after if "W" in text and len(text) > 1]


BADGE = extension.ProvenanceNode()
LINK = nodes.reference("", "Lemma 3")


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        ([nodes.Text("it falls "), BADGE], ["it ", "falls "]),
        ([nodes.Text("it\n"), nodes.inline("", "", BADGE, classes=["nobreak"])], ["", "it\n"]),
        ([nodes.Text("so it"), nodes.Text("\n"), BADGE], ["so ", "it\n"]),
        ([nodes.Text("by "), LINK, nodes.Text(" "), BADGE], ["by ", "", "Lemma 3 "]),
        ([nodes.Text("by "), nodes.math("", "W" * 40), nodes.Text(" "), BADGE], None),
        ([nodes.Text("("), BADGE], None),
        ([BADGE], None),
    ],
)
def test_a_badge_stays_with_the_word_before_it(parts, after):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", *(part.deepcopy() for part in parts))
    before = [child.astext() for child in paragraph]
    document += paragraph
    extension.KeepBadges(document).run()
    shown = [child.astext() for child in paragraph]
    assert [text for text in shown if text] == [text for text in after or before if text]
    if after:
        assert "nobreak" in paragraph[-1]["classes"] and paragraph[-1].next_node(type(BADGE))


PAGES = {
    "one": "(sec-log)=\n# It falls like $1/\\log^2 t$\n",
    "two": "(sec-zero)=\n# From $W_0 = 0$\n",
    "index": "# All\n\n```{toctree}\none\ntwo\n```\n\n"
    "{ref}`sec-log`, {ref}`sec-zero`, or {ref}`its log <sec-log>`.\n",
}


@pytest.mark.parametrize("ours", [True, False])
def test_a_reference_shows_the_formula_of_a_title(tmp_path, ours):
    for name, text in PAGES.items():
        (tmp_path / f"{name}.md").write_text(text)
    settings = {"extensions": ["myst_parser"], "myst_enable_extensions": ["dollarmath"]}
    out = tmp_path / "out"
    app = Sphinx(tmp_path, None, out, out, "html", settings, status=None, warning=None)
    if ours:
        app.add_post_transform(extension.SetTitles)
    app.build()
    links = re.findall(r'std-ref">(.*?)</span></a>', (out / "index.html").read_text())
    assert len(links) == 3 and links[2] == "its log"
    assert all(('class="math' in link) == ours for link in links[:2])
