"""Images, text and sentence vectors for the networks."""
