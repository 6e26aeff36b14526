"""Text of commands: units, dates, columns, exit sentences."""
