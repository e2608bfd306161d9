"""The book's own Sphinx extension: whose repository a clone is, badges, and line breaks."""

import importlib.util
import subprocess
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx_book_theme.header_buttons import launch as theme_launch

from tools.chapters import ROOT, notebook_sources
from tools.origin import github_address, github_repository, launch_ref


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location(
        "attnbias_book", ROOT / "book/_ext/attnbias_book.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def clone_with_origin(folder, origin):
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", origin], check=True)


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/someone/a-book.git",
        "https://github.com/someone/a-book",
        "https://name:secret@github.com/someone/a-book.git",
        "git@github.com:someone/a-book.git",
        "ssh://git@github.com/someone/a-book.git",
    ],
)
def test_a_github_origin_gives_the_repository_and_no_secret(tmp_path, origin):
    clone_with_origin(tmp_path, origin)
    assert github_repository(tmp_path) == "someone/a-book"
    assert github_address(tmp_path) == "https://github.com/someone/a-book"


@pytest.mark.parametrize("origin", ["/some/folder", "https://git.example.org/someone/a-book.git"])
def test_any_other_origin_gives_no_launch_buttons(tmp_path, origin):
    clone_with_origin(tmp_path, origin)
    assert github_repository(tmp_path) is None


def test_a_folder_without_an_origin_gives_none(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert github_repository(tmp_path) is None


def commit(folder, message):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", *identity, "-C", str(folder), "commit", "-q", "--allow-empty", "-m", message]
    subprocess.run(command, check=True)


def test_a_launch_takes_the_tag_on_the_release_and_the_branch_elsewhere(tmp_path):
    assert launch_ref(tmp_path, "1.2.3") == "main"  # no repository at all
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    commit(tmp_path, "release")
    assert launch_ref(tmp_path, "1.2.3") == "main"
    subprocess.run(["git", "-C", str(tmp_path), "tag", "v1.2.3"], check=True)
    assert launch_ref(tmp_path, "1.2.3") == "v1.2.3"
    assert launch_ref(tmp_path, "1.2.4") == "main"
    commit(tmp_path, "later")
    assert launch_ref(tmp_path, "1.2.3") == "main"


def configure(extension, folder):
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


def test_the_buttons_open_the_notebook_beside_the_page(extension, tmp_path):
    clone_with_origin(tmp_path, "git@github.com:someone/a-book.git")
    options = configure(extension, tmp_path)
    assert options["repository_url"] == "https://github.com/someone/a-book"
    notebook = "book/paper/attention_layer.ipynb"
    assert launch(options) == {
        "Binder": f"https://mybinder.org/v2/gh/someone/a-book/main?urlpath=lab/tree/{notebook}",
        "Colab": f"https://colab.research.google.com/github/someone/a-book/blob/main/{notebook}",
    }


def test_without_an_origin_there_are_no_buttons(extension, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    options = configure(extension, tmp_path)
    assert options == {"launch_buttons": {}}
    assert launch(options) == {}


def test_a_chapter_offers_its_notebook_and_another_page_none(extension):
    app, context = SimpleNamespace(srcdir=ROOT), {}
    extension.offer_notebook(app, "book/api", "page.html", context, None)
    assert context == {}
    for source in notebook_sources():
        page = source.relative_to(ROOT).with_suffix("").as_posix()
        extension.offer_notebook(app, page, "page.html", context, None)
        assert context == {"ipynb_source": f"{page}.ipynb"}


def test_the_notebooks_are_copied_to_where_the_menu_links_to(extension, tmp_path):
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


@pytest.mark.parametrize(
    ("behind", "kept"), [(", and so on", ","), (").", ")."), (" on", ""), ("-axis", "")]
)
def test_punctuation_stays_with_its_formula(extension, behind, kept):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", nodes.math("", "W"), nodes.Text(behind))
    document += paragraph
    extension.KeepPunctuation(document).run()
    (first, last) = paragraph.children
    assert paragraph.astext() == "W" + behind
    assert first.astext() == "W" + kept and last.astext() == behind.removeprefix(kept)
    assert ("nobreak" in first["classes"]) == bool(kept)


def test_a_page_with_a_bare_formula_at_its_end_is_left_alone(extension):
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.math("", "W"))
    extension.KeepPunctuation(document).run()
    assert isinstance(document[0][0], nodes.math)


def test_each_formula_keeps_its_own_full_stop(extension):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", nodes.strong("", "a"), nodes.Text("."))
    paragraph += [nodes.math("", "W"), nodes.Text(".")]
    document += paragraph
    extension.KeepPunctuation(document).run()
    assert paragraph.astext() == "a.W."
    assert [child.astext() for child in paragraph] == ["a", ".", "W.", ""]
