"""Cost table of slice work, by which slices take about equally long on any cluster.

The unit of work is one host examined in a walk over candidates; everything else is given as the number of hosts that
take as long. A slice ends when its work reaches the budget that the pacer learns from the time of past slices, so only
the ratios matter: a unit was 0.4 to 0.6 us in passes over 300 and 2,000 hosts. A simulated future counts steps of its
own: one step is one release or start, of some 20 us.
"""

# Work, in hosts examined.
WORK_OF_A_START = 16  # of each candidate served, beside the hosts examined for it
WORK_SPARED = 14  # given back for a candidate that an earlier query of the profile refuses as well
WORK_OF_A_REFUSAL = 8  # of a candidate that the single-task fast path refuses
WORK_OF_LISTING = 4  # of one bucket entered in its share queue
WORK_OF_ENTERING = 8  # of one expected end entered in the reservation table
HOSTS_A_COMPARISON = 64  # hosts compared at once, as columns, in the time of one examined

# Steps of a simulated future.
STEPS_FREE = 500  # simulated at every change without delay
STEPS_A_SLICE = 200  # simulated before a slice ends
STEPS_OF_A_COPY = 25  # of copying the host table
SCANS_A_STEP = 16  # hosts examined by a placement in the time of one step
HOLD_S_PER_STEP = 0.001  # validity earned by each step beyond the free ones: a fiftieth of the time
