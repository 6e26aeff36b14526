"""The order of pending jobs as users see it."""
