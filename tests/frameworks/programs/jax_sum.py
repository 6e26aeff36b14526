"""JAX: what `initialize` finds by itself, and a sum over all processes."""

import sys

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

jax.distributed.initialize()
rank, size = jax.process_index(), jax.process_count()
address = jax._src.distributed.global_state.coordinator_address
total = int(jax.pmap(lambda x: jax.lax.psum(x, "all"), axis_name="all")(jnp.array([rank + 1]))[0])
everyone = multihost_utils.process_allgather(jnp.array([rank])).ravel().tolist()
print(f"JAX {jax.__version__}: process {rank} of {size} at {address}: psum {total}, all {everyone}", flush=True)
sys.exit(total != size * (size + 1) / 2)
