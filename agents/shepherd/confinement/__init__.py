"""Confinement of an attempt: control groups, devices, CPUs and memory nodes."""
