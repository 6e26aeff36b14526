"""Policy: reads a view, returns a plan, changes nothing."""
