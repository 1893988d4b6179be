"""The command line: one file per command, whose name is the command's; `main` finds and runs them, `options` they share."""
