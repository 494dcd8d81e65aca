"""Damaged, foreign and truncated states and sidecars: refused with a ValueError, or used; no code in them is run."""
