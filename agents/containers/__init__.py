"""Containers for tasks whose role names an image: the task's program is started by a container runtime of the site."""
