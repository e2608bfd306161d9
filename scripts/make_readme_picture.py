"""Draw the README's picture: Figure 2's alignment panel, five seeds.

python scripts/make_readme_picture.py
"""

from __future__ import annotations

from pathlib import Path

from attnbias import experiments, plots

TARGET = Path(__file__).resolve().parent.parent / "book" / "images" / "readme.svg"


def main() -> None:
    plots.style()
    result = experiments.run("fig2", seeds=5, steps=10_000)
    TARGET.parent.mkdir(exist_ok=True)
    figure = plots.plot_alignment_rates(result)
    figure.savefig(TARGET, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
