"""Random advance reservations in a simulated cluster, jobs that use them, and jobs with dependencies."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import Request, RoleRequest, Shared, pack_text
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes
from lavad.core.state.records import place_of
from lavad.simulator.cluster.fleet import Behaviour
from lavad.simulator.cluster.world import World

if TYPE_CHECKING:
    from lavad.simulator.cluster.submitters import Users

ROOT = c.Caller("root", 0, True)
USER, UID = "u1000", 1000


class Bookers:
    """Advance reservations at random times, by a random generator of their own, so that the rest of a seed stays."""

    def __init__(self, world: World, users: "Users", bookings: int) -> None:
        self.world = world
        self.users = users
        self.rng = Random(f"reservations {world.seed}")
        self.bookings = bookings

    def begin(self, trouble_s: float) -> None:
        """Spread the reservations and dependent jobs over the trouble phase."""
        for number in range(self.bookings):
            self.world.after(self.rng.uniform(1, 0.7 * trouble_s), lambda number=number: self._reserve(number))  # type: ignore[misc]
            self.world.after(self.rng.uniform(1, 0.7 * trouble_s), lambda number=number: self._follow(number))  # type: ignore[misc]

    def _reserve(self, number: int) -> None:
        rng, now = self.rng, self.world.now
        begins_at = now + rng.choice((1.0, 10.0, 40.0))
        times = ReservationTimes(begins_at, begins_at + rng.choice((5.0, 20.0, 60.0)))
        name = f"rsv{number}"
        wanted = AdvanceReservation(
            name, ReservationKind.USER, (USER,), (), times, is_open=rng.random() < 0.5, suspends=rng.random() < 0.7
        )
        slots = rng.choice((1, 2, 4))
        self.world.master.ask(c.AddReservation(wanted, slots, (), "", ROOT))
        for one in range(rng.choice((1, 2))):
            self._submit(f"in-{number}-{one}", Request((RoleRequest(1, slots),), reservation=name))
        if rng.random() < 0.2:
            self.world.after(
                rng.uniform(5, 60), lambda: self.world.master.ask(c.RemoveReservation(name, ROOT, is_forced=True))
            )

    def _follow(self, number: int) -> None:
        """Submit a job that depends on the end of another one."""
        if self.users.known:
            other = self.rng.choice(self.users.known)
            name = f"after-{number}"
            self.world.history.follows[_request_id(name)] = other
            self._submit(name, Request((RoleRequest(),)), f"ended({other})")

    def _submit(self, name: str, request: Request, dependency: str = "") -> None:
        rng = self.rng
        shared = Shared(USER, UID, UID, "normal", "p", request, rerunnable=rng.random() < 0.4)
        shared = replace(shared, run_limit_s=rng.choice((0, 30)))
        job = NewJob(0, shared, pack_text(name=name), b"", _request_id(name), dependency=dependency)
        self.users.submit(job, Behaviour(rng.choice((0.5, 5.0, 20.0)), 0, False, False, 0.0))

    def settle(self) -> bool:
        """Remove all reservations and kill the jobs that wait for them; return True if there were any."""
        cluster = self.world.master.cluster
        names = list(cluster.reserved.by_name)
        for name in names:
            self.world.master.ask(c.RemoveReservation(name, ROOT, is_forced=True))
        waiting = [
            place_of(bucket.head().job)[0] for bucket in cluster.pending.buckets.values() if bucket.key.reservation
        ]
        for job in waiting:
            self.users.kill(job)
        return bool(names or waiting)


def _request_id(name: str) -> bytes:
    return f"booker-{name}".encode()
