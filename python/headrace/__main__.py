"""``python -m headrace``: the command line."""

import sys

from headrace._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
