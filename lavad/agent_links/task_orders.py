"""Orders for the tasks of a job as messages. The table of a large job is the same for all its hosts, and made once."""

from typing import TYPE_CHECKING

from lavad.core.model.task_values import RolePart, TaskRun, TaskTable
from lavad.core.orders import TasksOrder
from protos import agents_pb2 as pb
from protos import common_pb2

if TYPE_CHECKING:
    from lavad.core.model import Key


class TaskMessages:
    """Maker of these messages; it keeps the last table."""

    def __init__(self) -> None:
        self._last: tuple[Key, TaskTable, list[common_pb2.TaskHost]] | None = None

    def add(self, message: pb.Orders, order: TasksOrder) -> int:
        """Add the order to a message; return its size in bytes."""
        added = message.orders.add()
        added.key.job, added.key.index, added.key.attempt = order.key
        tasks = added.tasks
        tasks.version, tasks.reason = order.version, order.reason
        tasks.table.extend(self._table(order))
        tasks.start.extend(map(_run, order.start))
        tasks.stop.extend(map(_run, order.stop))
        tasks.signalled.extend(map(_run, order.signalled))
        tasks.hold.extend(map(_run, order.hold))
        tasks.signal = order.signal
        return added.ByteSize()

    def _table(self, order: TasksOrder) -> list[common_pb2.TaskHost]:
        if self._last is None or self._last[0] != order.key or self._last[1] is not order.table:
            made = [
                common_pb2.TaskHost(host=one.host, address=one.address, roles=map(part_message, one.parts))
                for one in order.table
            ]
            self._last = order.key, order.table, made
        return self._last[2]


def part_message(part: RolePart) -> common_pb2.RoleTasks:
    """Convert a role's tasks on one host."""
    return common_pb2.RoleTasks(role=part.role, indices=part.indices, ports=part.ports)


def _run(run: TaskRun) -> common_pb2.TaskRun:
    return common_pb2.TaskRun(role=run.task.role, index=run.task.index, run=run.run)
