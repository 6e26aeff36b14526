"""Tests that need an NVIDIA card."""
