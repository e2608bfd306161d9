"""How the heads of a model are recorded: its inputs, its calls, and the maps behind these."""
