"""``headrace doctor``: the checks of a machine; what the files of a dataset are, and what follows for training."""
