"""Preemption, reclaim of pools, slot reservation and shrinking of elastic jobs."""
