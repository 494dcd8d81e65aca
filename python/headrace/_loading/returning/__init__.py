"""Loaders that torch delivers for, given back to native threads when the reason has gone."""
