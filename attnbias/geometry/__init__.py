"""What the tokens alone decide, before any training."""
