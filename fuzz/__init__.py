"""Random input for the parsers and the recipes; README.md says how to run each."""
