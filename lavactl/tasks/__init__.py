"""Tasks of a parallel job, as blaunch and lavarun see them."""
