"""The attack on the library: junk arguments, flipped bits, killed writers. See __main__."""
