"""The command line as `python -m attnbias`."""

from .cli import main

raise SystemExit(main())
