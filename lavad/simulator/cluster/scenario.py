"""Random users and faults in a simulated cluster, drawn from a seed, and the run of one seed.

A user repeats a request until it is answered. At the end all faults are repaired, and within a bounded time every job
must have ended and every host must be empty.
"""

from dataclasses import dataclass

from lavad.simulator.cluster.admins import Rulers
from lavad.simulator.cluster.checkers import Violation, check
from lavad.simulator.cluster.fleet import SimulatedHost
from lavad.simulator.cluster.reservation_users import Bookers
from lavad.simulator.cluster.submitters import TROUBLE_S, Users
from lavad.simulator.cluster.task_users import TaskUsers
from lavad.simulator.cluster.world import World

HEALED_S = 1200.0  # afterwards all works, and remaining jobs must end
RULE_CHANGES = (0, 3, 0, 10)  # by the seed's number
BOOKINGS = (0, 0, 4, 0, 0, 0, 0, 8)  # advance reservations and dependent jobs, by the seed's number


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a seed; ``digest`` is a hash of its whole history."""

    seed: int
    digest: str
    processes: int
    steps: int


class Trouble:
    """Random faults."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng

    def begin(self) -> None:
        """Draw the faults of this seed; some seeds have few kinds, so that each kind occurs alone as well."""
        kinds = [self._crash_master, self._crash_agent, self._reboot, self._partition, self._stop_agent, self._break]
        chosen = [kind for kind in kinds if self.rng.random() < 0.6]
        for _ in range(self.rng.choice((4, 15, 40))):
            if chosen:
                self.world.after(self.rng.uniform(1, TROUBLE_S), self.rng.choice(chosen))

    def _a_host(self) -> SimulatedHost:
        """Choose a host, mostly one of a parallel job: there a fault can hit half of an attempt."""
        wide = [one for one in self.world.master.cluster.attempts.values() if len(one.allocation) > 1]
        if wide and self.rng.random() < 0.6:
            return self.world.hosts[self.rng.choice(self.rng.choice(wide).allocation).host]
        return self.world.hosts[self.rng.choice(sorted(self.world.hosts))]

    def _crash_master(self) -> None:
        master = self.world.master
        if master.is_up:
            master.crash()
            self.world.after(self.rng.choice((0.1, 2.0, 25.0)), master.start)

    def _crash_agent(self) -> None:
        host = self._a_host()
        if host.is_agent_up:
            host.kill_agent()
            self.world.after(self.rng.choice((0.1, 2.0, 20.0)), lambda: self._bring_up(host))

    def _reboot(self) -> None:
        host = self._a_host()
        host.lose_power()
        self.world.after(self.rng.choice((3.0, 30.0)), lambda: self._bring_up(host))

    @staticmethod
    def _bring_up(host: SimulatedHost) -> None:
        if not host.is_agent_up:
            host.start_agent()

    def _partition(self) -> None:
        directions = self.rng.choice((("up", "down"), ("up",), ("down",)))
        self.world.partition(self._a_host(), directions, self.rng.choice((1.0, 9.0, 14.0, 40.0, 75.0)))

    def _stop_agent(self) -> None:
        host = self._a_host()
        if host.is_agent_up and not host.is_stopped:
            incarnation = host.incarnation
            host.stop_agent()
            self.world.after(self.rng.choice((1.0, 10.0, 13.0, 40.0, 75.0)), lambda: self._continue(host, incarnation))

    @staticmethod
    def _continue(host: SimulatedHost, incarnation: int) -> None:
        if host.is_agent_up and host.incarnation == incarnation:
            host.continue_agent()

    def _break(self) -> None:
        self.world.cut(self._a_host())


def run(seed: int, jobs: int = 14, faults: bool = True, check_every: int = 1, task_jobs: int = 0) -> Verdict:
    """Run one seed from start to end.

    Raises:
        Violation, AssertionError, IllegalTransition: the seed found a defect.
    """
    world = World(seed, faults=faults, check_every=check_every)
    users, trouble = Users(world, jobs), Trouble(world)
    rulers = Rulers(world, RULE_CHANGES[seed % len(RULE_CHANGES)] if faults else 0)
    bookers = Bookers(world, users, BOOKINGS[seed % len(BOOKINGS)])
    tasks = TaskUsers(world, users, task_jobs)
    world.begin()
    users.begin()
    tasks.begin()
    bookers.begin(TROUBLE_S)
    if faults:
        trouble.begin()
        rulers.begin(TROUBLE_S)
    world.run_until(world.now + TROUBLE_S)
    check(world.history, world.ended(), healed=False)
    world.faults = False
    end, is_quiet = world.now + HEALED_S, False
    while world.now < end and not world.is_idle():
        world.run_until(min(end, world.now + 40.0), world.is_idle)
        if world.master.is_up:
            is_unsettled = rulers.settle(), bookers.settle()
            is_quiet = is_quiet and not any(is_unsettled)
            users.resume_everything()
            master = world.master
            if is_quiet and not master.cluster.attempts and not master.worklist.has_work(master.cluster, world.now):
                users.give_up_impossible()
            is_quiet = not world.master.cluster.attempts
    if not world.is_idle():
        raise Violation(f"not everything has ended: {world.unresolved()}")
    check(world.history, world.ended(), healed=True)
    return Verdict(seed, world.digest(), len(world.history.processes), world.master.steps)
