"""Options of a job for its hosts: the same fields in its spec and in its request."""

from dataclasses import fields

from lavad.api.translate import options_of
from lavad.core.model import NO_OPTIONS, JobOptions, Request, RoleRequest
from protos import jobs_pb2


def test_each_option_is_a_field_of_spec_and_request() -> None:
    """Of the same name, and with the same default."""
    spec = jobs_pb2.JobSpec()
    assert set(JobOptions._fields) <= set(jobs_pb2.JobSpec.DESCRIPTOR.fields_by_name)
    assert options_of(spec) == NO_OPTIONS
    assert set(JobOptions._fields) <= {one.name for one in fields(Request)}
    assert Request((RoleRequest(),)).options == NO_OPTIONS


def test_options_pass_from_spec_to_request() -> None:
    """Lists become tuples, so that equal requests are one object."""
    spec = jobs_pb2.JobSpec(hosts=["n1", "n2+1"], exclusive=True, reservation="ann#0")
    options = options_of(spec)
    assert options == JobOptions(("n1", "n2+1"), exclusive=True, reservation="ann#0")
    assert Request((RoleRequest(),), **options._asdict()).options == options
