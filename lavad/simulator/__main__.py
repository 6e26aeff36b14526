"""``python -m lavad.simulator``: replay a trace."""

import sys

from lavad.simulator.replay.main import main

sys.exit(main())
