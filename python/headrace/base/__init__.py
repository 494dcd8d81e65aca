"""Basics that every other package may use: the native module, errors, usable cores, ranks."""
