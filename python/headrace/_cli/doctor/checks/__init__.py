"""The checks of ``headrace doctor``."""
