"""For every test run, over tests/, the package's doctests and the notebooks alike."""

pytest_plugins = ["nbval_outputs"]
