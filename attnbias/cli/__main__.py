"""The command line as `python -m attnbias.cli`."""

from . import main

raise SystemExit(main())
