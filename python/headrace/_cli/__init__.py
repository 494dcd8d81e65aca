"""The command line: a module or a room for each command, with its arguments and its work."""
