"""Configuration of all tests: markers are honoured, and a run ends with a list of skipped tests and reasons.

A test marked `root`, `postgres` or `gpu` is skipped where the machine cannot run it, each time with a reason; no test
is skipped silently, because the last lines of a run list every reason with its number of tests.
"""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.tmpdir import tmppath_result_key
from hypothesis import HealthCheck, settings

# A busy machine is no defect of a strategy, and examples that were slow once are no failure. The same examples come
# each time, so that a run says something about the change it is made for; LAVA_EXPLORE=1 looks for new ones.
settings.register_profile(
    "lava",
    deadline=None,
    derandomize=not os.environ.get("LAVA_EXPLORE"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lava")

# A shell ignores SIGINT for background processes, and ignored signals are inherited: commands that tests interrupt
# would never receive it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Likewise nohup.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

POSTGRES_HOMES = "/usr/lib/postgresql"


def postgres_binaries() -> Path | None:
    """Directory of initdb and pg_ctl, newest version first; None if PostgreSQL is not installed."""
    versions = sorted(Path(POSTGRES_HOMES).glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True)
    if versions:
        return versions[0].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _reason_against(marker: str) -> str | None:
    """Reason why tests with this marker cannot run on this machine; None if they can."""
    if marker == "root" and os.geteuid() != 0:
        return "needs root"
    if marker == "postgres" and postgres_binaries() is None:
        return "PostgreSQL's server programs are not installed"
    if marker == "gpu" and not Path("/dev/nvidiactl").exists():
        return "no NVIDIA device on this machine"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that cannot run here, with the reason."""
    against = {marker: _reason_against(marker) for marker in ("root", "postgres", "gpu")}
    for item in items:
        for marker, reason in against.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a run be interrupted while a test is set up: its tmp_path then looks for results that pytest has not made."""
    item.stash.setdefault(tmppath_result_key, {})


def left_out(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Counter[str]:
    """Number of skipped tests by reason."""
    reasons: Counter[str] = Counter()
    for report in reports:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text.removeprefix("Skipped: ")] += 1
    return reasons


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print skipped tests with their reasons as the last lines of a run."""
    reasons = left_out(terminalreporter.stats.get("skipped", []))
    if not reasons:
        terminalreporter.write_line("left out: nothing")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"left out: {count} {'test' if count == 1 else 'tests'}: {reason}")
