"""Preparation of a job from its order: environment, users, devices."""
