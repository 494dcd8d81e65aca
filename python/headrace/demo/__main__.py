"""``python -m headrace.demo``: ``headrace demo``."""

import sys

from headrace.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
