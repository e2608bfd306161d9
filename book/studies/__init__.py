"""Runs of one chapter each, over many seeds, which the ledger judges too."""
