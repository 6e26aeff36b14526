"""``python -m lavad``: the master."""

import sys

from lavad.main import main

sys.exit(main())
