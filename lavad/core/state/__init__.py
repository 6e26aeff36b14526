"""Records and indexes that events change: jobs, counters, limits, shares, pools."""
