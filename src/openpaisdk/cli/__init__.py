"""The `opai` program: words from the shell, data to stdout, talk to stderr, an exit code."""
