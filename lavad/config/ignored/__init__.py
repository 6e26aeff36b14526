"""Settings that LSF's manuals and its own scripts have, and that lava passes over, with the reason."""
