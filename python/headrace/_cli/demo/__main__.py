"""``python -m headrace._cli.demo``: ``headrace demo``."""

import sys

from headrace._cli.main import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
