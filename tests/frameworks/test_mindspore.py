"""MindSpore's dynamic cluster, with MindSpore itself: a scheduler and two workers."""

from pathlib import Path

import pytest

from tests.frameworks.reporting import PROGRAMS, ends, note
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root, pytest.mark.framework("mindspore")]

JOB = """
name: sums
conventions: {{mindspore: {{}}}}
roles:
  scheduler: {{tasks: 1, ports: {{mindspore: 1}}, command: exec {python} {program}}}
  worker: {{tasks: 2, command: exec {python} {program}}}
"""


def test_two_workers_meet_at_the_scheduler(site: Site, programs: Path) -> None:
    """Each knows its rank, and their sum is right."""
    job = site.run(JOB.format(python=programs / "python", program=PROGRAMS / "mindspore_sum.py"))
    ends(site, job, 300)
    for index in range(2):
        said = site.log(job, f"worker/{index}")
        assert f"worker {index} of 2: sum 3" in said, said
        note("mindspore", next(line for line in said.splitlines() if line.startswith("MindSpore")))
