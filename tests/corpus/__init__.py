"""Inputs as other people's houses have them, each with its right value and source; README.md says how to add one."""
