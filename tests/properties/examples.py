"""Number of examples of the costliest properties: few in each run, LAVA_EXAMPLES times as many in `make acceptance`."""

import os

from hypothesis import settings


def examples(count: int) -> settings:
    """Settings of a property that is tried on half as many examples, or on a multiple of ``count``."""
    times = int(os.environ.get("LAVA_EXAMPLES", "0"))
    return settings(max_examples=count * times or (count + 1) // 2, deadline=None)
