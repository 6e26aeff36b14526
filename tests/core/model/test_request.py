"""Requests of one role and of several: what is decided for one role is never decided by the first of several."""

from lavad.core.model import Request, RoleRequest
from lavad.core.scheduling.placement.place import is_one_task, is_single_host, smallest_need
from tests.builders import a_role

ONE, WIDE = a_role(1), a_role(4, ptile=2)


def of(*roles: RoleRequest) -> Request:
    """A request of these roles."""
    return Request(tuple(roles))


def test_only_one_role_is_a_single_role() -> None:
    """None where there are several, whatever they ask for, and where there is none."""
    assert of(WIDE).single_role is WIDE
    assert of(ONE, ONE).single_role is None
    assert of().single_role is None


def test_several_roles_take_no_short_way() -> None:
    """Though each of them is one task that fits on one host."""
    assert is_one_task(of(ONE))
    assert is_single_host(of(ONE))
    assert not is_one_task(of(ONE, ONE))
    assert not is_single_host(of(ONE, ONE))


def test_tasks_of_several_roles_are_not_counted_over_hosts() -> None:
    """The first role's number of tasks per host does not bound the second's."""
    assert smallest_need(of(WIDE))[-3:] == (4, 1, 2)
    need = smallest_need(of(WIDE, ONE))
    assert need[-3:] == (1, 1, 1)
    assert need.slots_in_all == 5
