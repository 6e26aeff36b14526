"""Definitions that lsinfo shows: resources of the site, types and models of hosts."""

from lavad.api.records.resource_records import definitions_reply
from lavad.core.apply.reconfigure import take_policy
from lavad.core.model.policy import Policy
from lavad.core.model.rules.resources import Resource, ResourceKind
from tests.builders import a_cluster, a_host


def test_the_master_knows_definitions_types_and_models() -> None:
    """Those of lsf.shared, and those of joined hosts."""
    story = a_cluster(a_host("n1", type="X86_64", model="Intel_E5", cpu_factor=60.0))
    lic = Resource("lic", ResourceKind.NUMERIC, interval_s=30.0, is_increasing=True, description="Licences")
    take_policy(story.cluster, Policy(resources={"lic": lic}, cpu_factors={"Old": 12.5}))
    told = definitions_reply(story.cluster)
    assert [(one.name, one.kind, one.increasing, one.interval_s) for one in told.definitions] == [
        ("lic", "Numeric", True, 30.0)
    ]
    assert list(told.types) == ["X86_64"]
    assert [(one.name, one.cpu_factor) for one in told.models] == [("Intel_E5", 60.0), ("Old", 12.5)]
