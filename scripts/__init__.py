"""What made recorded files: samples, other repositories' runs, pictures; not in the library."""
