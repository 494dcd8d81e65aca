"""``python -m headrace.demo``."""

import sys

from headrace.demo.tour import main

if __name__ == "__main__":
    sys.exit(main())
