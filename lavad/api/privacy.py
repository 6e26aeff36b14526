"""Visibility of jobs to a caller: SECURE_JOB_INFO_LEVEL and SECURE_INFODIR_USER_ACCESS.

Own jobs and an administrator's view are never restricted. A job submitted for a group (-G) belongs to that group; any
other one belongs to all groups of its user.
"""

from typing import NamedTuple

from lavad.core.commands import Caller
from lavad.core.model import Shared
from lavad.core.model.policy import Policy


class _Rights(NamedTuple):
    """Access to summary and details, for jobs of the same user group and for all other jobs."""

    group_summary: bool
    group_details: bool
    other_summary: bool
    other_details: bool


LEVELS = (
    _Rights(True, True, True, True),
    _Rights(True, True, True, False),
    _Rights(True, True, False, False),
    _Rights(True, False, False, False),
    _Rights(False, False, False, False),
    _Rights(True, False, True, False),
)
ALL, OWN, BY_LEVEL = "N", "Y", "G"  # values of SECURE_INFODIR_USER_ACCESS


class Sight:
    """Visibility of jobs to one caller under the present policy.

    Args:
            of_history: apply SECURE_INFODIR_USER_ACCESS, for bhist.
    """

    def __init__(self, caller: Caller, policy: Policy, *, of_history: bool = False) -> None:
        self._caller = caller
        self._policy = policy
        level = policy.job_info_level
        if of_history and policy.history_access != BY_LEVEL:
            level = 4 if policy.history_access == OWN else 0
        self._rights = LEVELS[0 if caller.is_administrator else level]
        self._groups: dict[str, bool] = {}  # True for groups of which the caller is a member
        self._mates: dict[tuple[str, str], bool] = {}

    @property
    def is_whole(self) -> bool:
        """True if the caller may see the summary of any job."""
        return self._rights.other_summary

    def has_summary(self, shared: Shared) -> bool:
        """Return True if the caller may see that the job exists, and its summary."""
        return self.has_summary_of(shared.user, shared.user_group)

    def has_summary_of(self, user: str, user_group: str) -> bool:
        """Return True if the caller may see jobs that the user submitted for that group; empty for none."""
        rights = self._rights
        if rights.other_summary or user == self._caller.user:
            return True
        return rights.group_summary and self._is_of_same_group(user, user_group)

    def has_details(self, shared: Shared) -> bool:
        """Return True if the caller may see all details of the job."""
        rights = self._rights
        if rights.other_details or shared.user == self._caller.user:
            return True
        return rights.group_details and self._is_of_same_group(shared.user, shared.user_group)

    def _is_of_same_group(self, user: str, user_group: str) -> bool:
        key = (user, user_group)
        known = self._mates.get(key)
        if known is None:
            known = self._mates[key] = any(
                user_group == name or (not user_group and user in self._policy.user_groups[name])
                for name in self._own_groups()
            )
        return known

    def _own_groups(self) -> list[str]:
        if not self._groups:
            groups = self._policy.user_groups.items()
            self._groups = {name: self._caller.user in members for name, members in groups}
        return [name for name, is_member in self._groups.items() if is_member]
