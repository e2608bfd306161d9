"""The page for maintainers: its examples run, and what it says of files and versions holds."""

import json
import re
import tomllib

import pytest
import test_book
import yaml

from attnbias import __version__, _records, errors, experiments
from attnbias._records import read_table
from book.claims import Evidence, find_all, refute
from tools import sync_notebooks
from tools.chapters import ROOT, is_notebook
from tools.first_cell import version

PAGE = (ROOT / "book/maintainers.md").read_text(encoding="utf8")
LONGEST = 14
CHAPTER_CHECKS = [
    test_book.test_cells_equal_the_source,
    test_book.test_every_code_cell_fits_a_screen_and_was_executed_in_order_without_an_error,
    test_book.test_the_notebook_says_nothing_of_the_machine_that_ran_it,
]


def blocks(title: str, language: str = "python", page: str = PAGE) -> list[str]:
    """The fenced blocks of one section."""
    section = re.split(r"^## ", page, flags=re.M)
    (text,) = [part for part in section if part.startswith(f"{title}\n")]
    return [code for _, code in re.findall(rf"^(`{{3,4}}){language}\n(.*?)^\1$", text, re.M | re.S)]


def run(title: str, page: str = PAGE) -> dict:
    """The section's blocks, one after the other, as a reader would paste them."""
    names: dict = {}
    for code in blocks(title, page=page):
        exec(compile(code, title, "exec"), names)
    return names


@pytest.mark.parametrize(
    "title", ["The path of one data set", "Add a rule", "Add a data set", "Add a check"]
)
def test_the_example_runs_and_is_short(title):
    assert run(title)
    for code in blocks(title):
        assert len([line for line in code.splitlines() if line.strip()]) <= LONGEST


def test_an_example_that_is_wrong_would_be_noticed():
    with pytest.raises(AssertionError):
        run("Add a rule", PAGE.replace("norm_power=-0.5", "norm_power=-0.6"))
    with pytest.raises(AssertionError):
        run("Add a check", PAGE.replace("+ trace.path_length", "+ 0.9 * trace.path_length"))


def test_the_claim_of_the_example_is_one_that_the_ledger_judges():
    claim = run("Add a check")["path_length"]
    (entry,) = find_all({"Ours": (claim,)}, Evidence())["Ours"]
    assert entry["verdict"] == "holds" and "pair of Section 3.3" in entry["note"]
    assert [refute(claim, Evidence(), each).verdict for each in claim.refuted_by] == ["undecided"]


def test_the_rule_of_the_example_trains_in_torch_and_jointly():
    names = run("Add a rule")
    rule, data = names["HalfNormalised"](0.1), names["make_example1"]()
    by_torch = names["train"](data, rule, 20, engine="torch")
    assert by_torch.W_norm == pytest.approx(names["train"](data, rule, 20).W_norm, rel=1e-9)
    assert names["train"](data, rule, 20, train_u=True).status == "completed"


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The page's chapter in a book of its own, executed as `make notebooks` does."""
    folder = tmp_path_factory.mktemp("book")
    (text,) = blocks("Add a chapter", "md")
    source = folder / "60_a_pair.md"
    source.write_text(text, encoding="utf8")
    sync_notebooks.execute(source)
    return source


@pytest.mark.slow
def test_the_chapter_of_the_example_passes_the_checks_of_chapters_and_a_broken_one_does_not(
    chapter, tmp_path
):
    assert is_notebook(chapter)
    for check in CHAPTER_CHECKS:
        check(chapter)
    assert "length is 0.5 to 1e-12: True" in chapter.with_suffix(".ipynb").read_text()
    copy = tmp_path / chapter.name
    copy.write_text(chapter.read_text().replace("NGD(0.5), 1)", "NGD(0.5), 2)"))
    copy.with_suffix(".ipynb").write_bytes(chapter.with_suffix(".ipynb").read_bytes())
    with pytest.raises(AssertionError):
        test_book.test_cells_equal_the_source(copy)


def named_files(page: str = PAGE) -> set[str]:
    """Paths of the repository that the page names."""
    found = set(re.findall(r"`((?:attnbias|book|scripts|tests|tools)/[\w./-]+)`", page))
    return found | set(re.findall(r"`((?:[A-Z]+|pyproject|_toc)\.\w+)`", page))


def test_every_file_that_the_page_names_is_there():
    assert len(named_files()) > 15
    patterns = {"book/PART/NAME.md"}
    assert [name for name in named_files() - patterns if not (ROOT / name).exists()] == []
    assert named_files("`attnbias/no_such.py`") == {"attnbias/no_such.py"}


def test_every_name_that_the_page_calls_a_table_is_one():
    for name, path in re.findall(r"`([A-Z_]{5,}\w*)` of `(attnbias/[\w/]+\.py)`", PAGE):
        assert re.search(rf"^{name}\b.*=", (ROOT / path).read_text(), re.M), f"{name} in {path}"


def test_the_version_stands_the_same_wherever_it_stands():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    files = [json.loads((ROOT / name).read_text()) for name in (".zenodo.json", "codemeta.json")]
    assert {version(ROOT), cited["version"], *(each["version"] for each in files)} == {__version__}
    heading = re.search(r"^## \[(.+)\] - ", (ROOT / "CHANGELOG.md").read_text("utf8"), re.M)
    assert heading[1] == __version__
    # the release's workflow compares its tag with the library's own
    assert "attnbias.__version__" in (ROOT / ".github/workflows/release.yml").read_text()
    titles = {cited["title"], files[0]["title"]}
    assert len(titles) == 1 and titles.pop().startswith(f"{files[1]['name']}: ")
    keywords = [set(each["keywords"]) for each in files]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    assert keywords == 2 * [set(project["keywords"])]
    stable = "Development Status :: 5 - Production/Stable" in project["classifiers"]
    assert stable == (int(__version__.partition(".")[0]) > 0)


def test_the_licence_of_each_bundled_file_is_named_as_beside_it():
    page = (ROOT / "book/licences.md").read_text(encoding="utf8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    folder = ROOT / "attnbias/data/files"
    for path in (p for p in folder.iterdir() if p.suffix != ".md"):
        (row,) = (line for line in rows if f"`{path.name}`" in line.split("|")[1])
        said = (folder / f"{path.name.split('.')[0]}.md").read_text(encoding="utf8")
        for licence in re.findall(r"CC BY-SA \d\.\d|CC0|Apache|MIT", row.split("|")[3]):
            assert licence in said, f"{path.name}: {licence}"


# The files in book/results that the library reads back.
RECORDED = [p for p in sorted(ROOT.glob("book/results/**/*.*")) if p.stem in experiments.list()]


def commits(path) -> list[str]:
    """The commits that a recorded file says it was made from."""
    if path.suffix == ".parquet":
        return [made["commit"] for made in read_table(path, ("made",))[1].get("made", [])]
    made = json.loads(path.read_text())["provenance"]
    return [each["commit"] for each in (made, *made.get("parts", []))]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_recorded_run_is_signed_from_a_clean_clone_and_one_of_another_format_is_refused(
    path, tmp_path, monkeypatch
):
    assert commits(path) and not any(each.endswith("-dirty") for each in commits(path))
    result = experiments.load(path.stem, path.parent)
    with monkeypatch.context() as newer:
        newer.setattr(_records, "FORMAT", _records.FORMAT + 1)
        result.save(tmp_path / path.name)
    with pytest.raises(errors.FileFormatError, match="format"):
        experiments.load(path.stem, tmp_path)
