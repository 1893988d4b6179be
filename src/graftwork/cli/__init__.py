"""The command line: one file per command, named as it is; `main` finds and runs them, `options` they share."""
