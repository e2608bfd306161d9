"""One call that says what the theory promises about tokens, and where training goes."""
