"""``python -m agents`` is `lava-agent`."""

import sys

from agents.main import main

if __name__ == "__main__":
    sys.exit(main())
