"""Job files of elastic jobs for the seed rows, and what their trainers write."""

from pathlib import Path

from tests.seeds.site import Site

# A worker that says when it starts and when it is told to end, and then takes its time.
WORKER = """
trap 'echo "$(date +%s.%N) TERM $TASK" >> {folder}/ends; sleep {lingers}; exit 0' TERM
echo "$(date +%s.%N) RUN $TASK $$" >> {folder}/starts
while :; do sleep 0.1; done
"""
# The first worker keeps a record of the discovery list beside its own work.
LEADER = """
trap 'exit 0' TERM
echo "$(date +%s.%N) RUN $TASK $$" >> {folder}/starts
while [ ! -e {folder}/stop ]; do
  list=$($LAVA_DISCOVER_HOSTS | sort | tr '\\n' ' ')
  at=$(stat -c %.9Y $LAVA_DISCOVER_HOSTS)
  [ "$list" = "$last" ] || echo "$at $list" >> {folder}/lists
  last=$list; sleep 0.05
done
"""


def workers(
    site: Site, least: int, most: int, name: str = "elastic", lingers: float = 0, extra: str = "", role: str = ""
) -> str:
    """A job of equal workers, the first of which records the list; it ends when the file ``stop`` is there."""
    leader, worker = (text.format(folder=site.folder, lingers=lingers) for text in (LEADER, WORKER))
    body = f'TASK=$LAVA_TASK_INDEX; if [ "$TASK" = 0 ]; then {leader.strip()}\nelse {worker.strip()}\nfi'
    command = body.replace("\n", "\n      ")
    return f"""
name: {name}
{extra}
roles:
  worker:
    tasks: {least}-{most}
{role}
    command: |
      {command}
    policies:
      - {{on: succeeded, do: ignore}}
"""


def lists(folder: Path) -> list[tuple[float, list[str]]]:
    """Discovery lists that the first worker has seen, with the time at which each was written."""
    path = folder / "lists"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(line.split()[0]), line.split()[1:]) for line in lines]


def slots_listed(folder: Path) -> int:
    """Slots in the newest list."""
    found = lists(folder)
    return sum(int(entry.rpartition(":")[2]) for entry in found[-1][1]) if found else 0


def starts(folder: Path) -> dict[int, list[int]]:
    """Process ids of each worker, in the order of its starts."""
    path, found = folder / "starts", dict[int, list[int]]()
    for line in path.read_text().splitlines() if path.exists() else []:
        _, _, index, pid = line.split()
        found.setdefault(int(index), []).append(int(pid))
    return found


def ends(folder: Path) -> dict[int, float]:
    """Time at which each worker was told to end."""
    path = folder / "ends"
    lines = path.read_text().splitlines() if path.exists() else []
    return {int(line.split()[2]): float(line.split()[0]) for line in lines}
