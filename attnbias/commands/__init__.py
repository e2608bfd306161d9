"""The subcommands of the command line, one a module."""
