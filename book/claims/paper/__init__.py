"""Claims of the paper on a fixed decoder, on its figures and networks; ours that sharpen them."""
