"""Figures 1, 4, 6 and 7: four optimizers on networks, their runs, and what the text claims."""

from .claims import catch_up, check_faster, growth, leads
from .figures import LanguageFigure, VisionFigure, fig1, fig4, fig6, fig7
from .result import NetworkResult
from .runs import HALF, Recipe, train_all

__all__ = [
    "HALF",
    "LanguageFigure",
    "NetworkResult",
    "Recipe",
    "VisionFigure",
    "catch_up",
    "check_faster",
    "fig1",
    "fig4",
    "fig6",
    "fig7",
    "growth",
    "leads",
    "train_all",
]
