"""Predicting the next token: the priority graph and its SVM."""
