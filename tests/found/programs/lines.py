"""Print numbers until a file appears: `lines.py STOP`. Each line begins with the task's number; the exit code is 5."""

import os
import sys
import time

number = os.environ["LSF_PM_TASKID"]
count = 0
while not os.path.exists(sys.argv[1]):
    count += 1
    sys.stdout.write(f"{number} {count}\n")
    sys.stdout.flush()
    time.sleep(0.1)
sys.stdout.write(f"{number} last {count}\n")
sys.exit(5)
