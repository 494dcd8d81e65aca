"""The command line: arguments, commands, and the work of each."""
