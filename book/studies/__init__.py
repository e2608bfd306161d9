"""Runs of single chapters: attention along a run, and many seeds that the ledger judges too."""
