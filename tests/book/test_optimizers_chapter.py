"""The lines that the chapter on optimizers gives to readers who train by transformers."""

import math
import re
from functools import partial

import pytest
import torch
from points import EXAMPLES, Points, by_hand
from root import ROOT
from tolerances import CLOSED_FORM

from attnbias.optim import SPS

CHAPTER = ROOT / "book/paper/optimizers.md"


@pytest.mark.slow
def test_the_chapters_lines_for_transformers_trainer(tmp_path, monkeypatch):
    """Word for word, and with the clipping that they leave out."""
    from transformers import Trainer, TrainingArguments

    monkeypatch.chdir(tmp_path)
    lines = re.search(r"```python\n(losses = \{\}.*?)```", CHAPTER.read_text(encoding="utf8"), re.S)
    quiet = {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}
    halves = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}

    def trained(lines: str, steps: int) -> tuple:
        names = {
            "SPS": SPS,
            "Trainer": Trainer,
            "model": Points(),
            "examples": EXAMPLES,
            "TrainingArguments": partial(TrainingArguments, max_steps=steps, **quiet, **halves),
        }
        exec(lines, names)
        names["trainer"].train()
        assert not names["losses"]
        return names["optimizer"], names["model"]

    optimizer, model = trained(lines[1], 3)
    other = Points()
    own = SPS(other.parameters(), max_grad_norm=1.0)
    by_hand(own, other, 3)
    assert not torch.equal(model.map, Points().map)
    torch.testing.assert_close(model.map, other.map, rtol=CLOSED_FORM, atol=CLOSED_FORM)
    torch.testing.assert_close(optimizer.last_step_size, own.last_step_size)

    clips = lines[1].replace("max_grad_norm=0", "max_grad_norm=1.0")
    clips = clips.replace("max_grad_norm=1.0)\noptimizer.r", "lr=math.inf)\noptimizer.r")
    clipped, _ = trained("import math\n" + clips, 1)
    other = Points()
    free = SPS(other.parameters(), lr=math.inf)
    by_hand(free, other, 1)
    norm = float(free.last_grad_norm)
    assert norm > 2 and float(clipped.last_grad_norm) == pytest.approx(1, rel=1e-5)
    # torch clips at the norm + 1e-6
    assert float(clipped.last_step_size / free.last_step_size) == pytest.approx(norm**2, rel=1e-5)
