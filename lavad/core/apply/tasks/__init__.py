"""Application of the events of jobs of tasks, and the places of tasks."""
