"""The claims on each figure, one file an experiment: from its result to checks, each with a key.

A key has the claim's name first and then, after a slash, the panel, rule or corpus that it is on.
"""
