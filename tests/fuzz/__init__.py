"""The attack on the library: junk arguments, damaged files, killed writers. See __main__."""
