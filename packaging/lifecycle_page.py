"""Writes docs/reference/lifecycle.md from the transition tables, so that the page cannot differ from the code."""

import sys
from collections import defaultdict
from pathlib import Path

from lavad.core.decide.tasks import job_phases
from lavad.core.lifecycle import TRANSITIONS
from lavad.core.model import JobState

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "lifecycle.md"

HEAD = """\
# The life of a job

<!-- Written by packaging/lifecycle_page.py from lavad/core/lifecycle.py: change it there, then run make docs. -->

Every state a job can be in, and every event that takes it from one to another.
What is not listed cannot happen: the master stops rather than leave the table.
STAGING (the allocation is committed, its hosts are making themselves ready) is shown as RUN.
"""


def states_part() -> str:
    """The part about the states: a diagram of the changes of state, then every pair of state and event."""
    arrows: dict[tuple[JobState, JobState], set[str]] = defaultdict(set)
    for (state, event), targets in TRANSITIONS.items():
        for target in targets - {state}:
            arrows[state, target].add(event.__name__)
    order = {state: position for position, state in enumerate(JobState)}
    lines = [HEAD, "```mermaid", "stateDiagram-v2", "    [*] --> PEND", "    [*] --> PSUSP"]
    for (state, target), events in sorted(arrows.items(), key=lambda arrow: (order[arrow[0][0]], order[arrow[0][1]])):
        lines.append(f"    {state.name} --> {target.name}: {', '.join(sorted(events))}")
    lines += [
        "    DONE --> [*]",
        "    EXIT --> [*]",
        "```",
        "",
        "| in state | event | leads to |",
        "| --- | --- | --- |",
    ]
    for (state, event), targets in sorted(TRANSITIONS.items(), key=lambda row: (order[row[0][0]], row[0][1].__name__)):
        leads = ", ".join(target.name for target in sorted(targets, key=order.__getitem__))
        lines.append(f"| {state.name} | {event.__name__} | {leads} |")
    return "\n".join(lines) + "\n"


TASKS_HEAD = """
## Jobs of tasks

Beside its state a job whose tasks are started one by one has a phase (`lavad/core/decide/tasks/job_phases.py`).
Lifecycle policies and commands cause the actions; an action that is not listed for a phase has no effect in it.
Aborted, terminated and completed are reached when no task is alive any more.
"""


def tasks_part() -> str:
    """The part about jobs of tasks: a diagram, then every pair of phase and action."""
    rows = job_phases.TRANSITIONS.items()
    lines = [TASKS_HEAD, "```mermaid", "stateDiagram-v2", "    [*] --> active"]
    arrows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (phase, action), target in rows:
        arrows[phase.value, target.value].append(action.name)
    lines += [f"    {start} --> {target}: {', '.join(names)}" for (start, target), names in arrows.items()]
    lines += [
        *(f"    {under_way.value} --> {reached.value}" for under_way, reached in job_phases.OF_VERDICT.values()),
        "    restarting --> active",
        "```",
        "",
        "| in phase | action | leads to |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {phase.value} | {action.name} | {target.value} |" for (phase, action), target in rows]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page's text."""
    return states_part() + tasks_part()


def main() -> int:
    """Write the page; returns the exit code."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
