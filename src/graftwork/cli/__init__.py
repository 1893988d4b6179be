"""The command line: one file per command, named after it; `main` finds and runs them, `options` holds shared flags."""
