"""Containers: layouts and images alone, the entering process with bubblewrap, and jobs with images on a cluster."""
