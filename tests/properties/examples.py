"""Number of examples of the costliest properties: few in each run, LAVA_EXAMPLES times as many in `make acceptance`."""

import os

from hypothesis import settings


def examples(count: int) -> settings:
    """Settings of a property that is tried on so many examples, or on a multiple of them."""
    return settings(max_examples=count * int(os.environ.get("LAVA_EXAMPLES", "1")), deadline=None)
