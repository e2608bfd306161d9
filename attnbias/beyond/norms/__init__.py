"""Steepest descent in other norms and the hard-margin SVM of each."""
