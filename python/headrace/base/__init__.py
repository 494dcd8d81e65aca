"""What every other package may use: the native module, errors, the machine, the ranks."""
