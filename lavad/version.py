"""Version of the master, which is that of all programs."""

import protos

VERSION = protos.__version__
