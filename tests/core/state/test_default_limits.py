"""Users to whom the default row of lsb.users applies."""

from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.users import UserRule
from lavad.core.state.limits import user_rows

GROUPS = {name: Names(False, frozenset({"ann", "bob"})) for name in ("art", "crew")}


def whose(**rules: bool) -> list[tuple[str, bool, bool]]:
    """Rows as (name, True for a group's, True if each user has it separately)."""
    rows = {"default": UserRule(slots=4), "crew": UserRule(slots=9)}
    found = user_rows(Policy(user_groups=GROUPS, user_rules=rows, **rules))
    return [(name, is_group, each) for name, _, _, is_group, each in found]


def test_the_default_row_is_for_users_and_for_groups_without_a_row() -> None:
    """Each of these groups as a whole, unless DEFAULT_LIMIT_IGNORE_USER_GROUP restricts it to users."""
    assert whose() == [("crew", True, False), ("default", False, True), ("art", True, False)]
    assert whose(default_limits_ignore_groups=True) == [("crew", True, False), ("default", False, True)]
