"""TensorFlow's parameter server strategy: the chief has two workers bring a number on a server from 0 to 3."""

import sys

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print("TensorFlow", tf.__version__, resolver.task_type, resolver.task_id, resolver.cluster_spec().as_dict(), flush=True)
if resolver.task_type in ("worker", "ps"):
    place = {"job_name": resolver.task_type, "task_index": resolver.task_id, "protocol": "grpc"}
    tf.distribute.Server(resolver.cluster_spec(), **place).join()  # never returns

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(0.0)


@tf.function
def step() -> None:
    """Take one step, on a worker."""
    tf.print("step from", weight, output_stream=sys.stdout)
    weight.assign_sub(0.2 * (weight - 3.0))


for _ in range(60):
    coordinator.schedule(step)
coordinator.join()
print(f"weight {weight.numpy():.2f} on {weight.device}", flush=True)
sys.exit(abs(float(weight.numpy()) - 3.0) > 0.1)
