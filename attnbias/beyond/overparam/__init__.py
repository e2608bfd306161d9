"""How many features it takes before every local optimum is global."""
