"""Volcano's Jobs in the core: partitions."""

from tests.job_files.test_lives import begun

PARTITIONS = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j}
spec:
  policies: [{event: PodFailed, action: RestartPartition}]
  tasks:
  - name: t
    replicas: 4
    partitionPolicy: {totalPartitions: 2, partitionSize: 2}
    template: {spec: {restartPolicy: Never, containers: [{name: c, command: [run]}]}}
"""


def test_a_partition_restarts_as_a_whole() -> None:
    """RestartPartition ends and starts the tasks of the failed one's partition, and leaves the other alone."""
    story, key = begun(PARTITIONS)
    story.ends(key, 0, 3, code=1)
    assert story.phases(key) == "RRTW"
    story.stops(key)
    assert story.phases(key) == "RRSS"
