"""What a decision consists of."""

from dataclasses import dataclass, field
from typing import Any

from lavad.core.events import Event
from lavad.core.orders import Order


@dataclass(slots=True)
class Decision:
    """Events in the order they take effect; orders beyond those that follow from the events; the reply."""

    events: list[Event] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    reply: Any = None
