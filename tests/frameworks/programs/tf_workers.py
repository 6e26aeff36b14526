"""TensorFlow's MultiWorkerMirroredStrategy: each step adds up the numbers of all workers."""

import json
import os
import sys

import tensorflow as tf

index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(0.0)


@tf.function
def step() -> tf.Tensor:
    """Bring the weight nearer to the mean of 1, 2, ... over the workers."""

    def of_replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(index + 1.0))
        mean = total / strategy.num_replicas_in_sync
        weight.assign_sub(0.2 * (weight - mean))
        return total

    return strategy.run(of_replica)


with strategy.scope():
    weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
for _ in range(40):
    total = step()
size = strategy.num_replicas_in_sync
print(
    f"TensorFlow {tf.__version__}: worker {index} of {size}: sum {float(total):.0f}, weight {weight.numpy():.2f}",
    flush=True,
)
sys.exit(float(total) != size * (size + 1) / 2)
