"""Figures 1, 4, 6 and 7: four optimizers on networks, their runs, and what the text claims."""
