"""Samples that other machines make: a loader's side, and the server."""
