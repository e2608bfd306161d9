"""Figures that a reader moves, as markup for `IPython.display.HTML`."""

from .frames import slider_attention, slider_html
from .hands import slider_hands
from .runs import slider_normalisation, slider_paths
from .scale import slider_scale
from .start import row_plane, slider_start
from .support import slider_support
from .table import sortable_table
from .window import slider_window
from .words import Sentence, attended_words

__all__ = [
    "Sentence",
    "attended_words",
    "row_plane",
    "slider_attention",
    "slider_hands",
    "slider_html",
    "slider_normalisation",
    "slider_paths",
    "slider_scale",
    "slider_start",
    "slider_support",
    "slider_window",
    "sortable_table",
]
