"""Fixtures of the tests of job files: the surroundings of the command tests."""

from tests.lavactl.conftest import desk

__all__ = ["desk"]
