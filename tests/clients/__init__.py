"""Programs made for LSF, unmodified, as an ordinary user runs them."""
