"""What a newcomer types from the README and from chapter 37 works as it stands there."""

import ast
import importlib.util
import re
import textwrap
import tomllib

import pytest
import torch
import yaml
from foreign import save_model

import attnbias
from attnbias.optim import SNGD
from tools.chapters import ROOT

README = (ROOT / "README.md").read_text(encoding="utf8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
API = (ROOT / "book/api.md").read_text(encoding="utf8")
CHAPTER = (ROOT / "book/yours/your_model.md").read_text(encoding="utf8")


def missing_targets(text: str) -> set[str]:
    """The commands `make NAME` of a text that the Makefile does not have."""
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE))
    assert named
    return named - set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def unknown_names(code: str) -> set[str]:
    """The names of a piece of code that it neither imports nor makes."""
    tree = ast.parse(code)
    nodes = list(ast.walk(tree))
    made = {a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}
    made |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - made - {"print"}


TOKENS, MODEL = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(TOKENS, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "What to do next" in out and "every sequence ends on its optimal token" in out
    assert (tmp_path / "run.npz").is_file()


def test_the_readmes_lines_for_a_model_run_word_for_word(tmp_path, monkeypatch, capsys):
    (name,) = re.findall(r'load_model\("(.+?)"\)', MODEL)
    save_model(tmp_path / name)  # of that name, and with a tokenizer that has no padding
    monkeypatch.chdir(tmp_path)
    exec(compile(MODEL, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("Comparison(") == 2


def test_the_citation_is_of_the_library_with_the_paper_beside_it():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    assert "preferred-citation" not in cited  # it would be cited in place of the library
    assert cited["title"].startswith("attnbias") and cited["version"] == attnbias.__version__
    (paper,) = cited["references"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    assert paper["url"] == project["urls"]["Paper"] and paper["url"] in README


def test_a_plain_loop_goes_as_far_as_the_readme_says():
    """Its gradient is a number far below, but torch's norm squares it; SNGD's does not."""
    assert "below 10⁻¹⁶²" in README
    gradient = torch.full((40, 40), 1e-163, dtype=torch.float64)
    assert gradient.norm() == 0 < gradient.abs().max()
    assert (gradient * 100).norm() > 0
    W = torch.zeros_like(gradient, requires_grad=True)
    W.grad = gradient
    SNGD([W], lr=0.1).step()
    assert W.detach().norm() == pytest.approx(0.1)


def test_the_readmes_extras_are_those_of_the_reference():
    rows = [row for row in README.splitlines() if row.startswith("| `")]
    assert rows and rows == [row for row in API.splitlines() if row.startswith("| `")][: len(rows)]


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_command_is_there(text):
    assert missing_targets(text) == set()
    assert missing_targets(text + "\nmake coffee\n") == {"coffee"}


def test_every_extra_is_there():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf8")
    named = re.findall(r"pip install '[.\w]+\[([\w,]+)\]'", README)
    extras = {each for names in named for each in names.split(",")}
    extras |= set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))
    assert len(extras) >= 5 and all(f"\n{extra} = [" in project for extra in extras)


def test_the_lines_for_a_model_of_ones_own_bring_their_imports():
    block = CHAPTER.split("## Your own model\n")[1].split("One command")[0]
    lines = [line for line in block.splitlines() if line.startswith("    ") or not line]
    code = textwrap.dedent("\n".join(lines))
    assert ".compare()" in code and unknown_names(code) == set()
    without = "\n".join(line for line in code.splitlines() if "import" not in line)
    assert unknown_names(without) == {"load_model", "random_head", "record_heads"}
    for module in re.findall(r"from (attnbias\S*) import", code):
        assert importlib.util.find_spec(module) is not None
