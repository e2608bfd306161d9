"""Where the project lies: in a clone, or unpacked from its sdist, which has no book."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
