"""DeepSpeed's launcher: how it reads the host file of the job."""

import os

import deepspeed
from deepspeed.launcher.runner import fetch_hostfile

print(f"DeepSpeed {deepspeed.__version__}:", dict(fetch_hostfile(os.environ["LAVA_DEEPSPEED_HOSTFILE"])), flush=True)
