"""Entry point of `python -m lavad.maintenance`."""

import sys

from lavad.maintenance.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
