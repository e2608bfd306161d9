"""No hidden state; which way imports go is held by import-linter (`make lint`, pyproject.toml)."""

from tools.chapters import ROOT


def test_no_global_seed():
    """Seeds go through explicit generators."""
    for path in (ROOT / "attnbias").rglob("*.py"):
        text = path.read_text(encoding="utf8")
        for call in ("torch.manual_seed(", "np.random.seed(", "numpy.random.seed(", "random.seed("):
            assert call not in text, f"{path.name} sets a global seed"
