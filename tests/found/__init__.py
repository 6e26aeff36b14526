"""Defects found from outside, each as a test named after its symptom."""
