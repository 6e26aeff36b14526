"""``python -m lavad.simulator``: replay a trace."""

import sys

from lavad.simulator.main import main

sys.exit(main())
