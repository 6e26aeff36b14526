"""lava on booted hosts, as a site has it."""

import pytest

pytest.register_assert_rewrite("tests.real_hosts.story")
