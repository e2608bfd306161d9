"""What several rooms share: arguments, stacks of matrices, a rate along a run, lines of runs."""
