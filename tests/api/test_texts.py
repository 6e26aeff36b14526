"""Texts of requests: no field of the wire takes what would end a line, a field or an option somewhere else."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from lavad.api import texts
from lavad.core.model.reasons import Refused
from protos import cluster_pb2, jobs_pb2

SERVICES = [service for file in (jobs_pb2, cluster_pb2) for service in file.DESCRIPTOR.services_by_name.values()]
REQUESTS = {method.input_type.name: method.input_type for service in SERVICES for method in service.methods}
# Forms of texts in which a word is enough.
WORDS = {"Convention.options": "subdomain={}"}
ALWAYS = "\0\x1b\x07\x7f\x9b"  # ends a C text, or moves a terminal's cursor; 9b is ESC [ in one character
IN_LINES = "\n\r\t\u2028"


def paths(kind: Descriptor, above: tuple[FieldDescriptor, ...] = ()) -> Iterator[tuple[FieldDescriptor, ...]]:
    """Ways from a kind of messages to each text in it."""
    for field in kind.fields:
        if field.type == field.TYPE_STRING:
            yield (*above, field)
        elif field.message_type is not None and field.message_type not in [one.message_type for one in above]:
            yield from paths(field.message_type, (*above, field))


def message_with(kind: Descriptor, way: tuple[FieldDescriptor, ...], text: str) -> Any:
    """A message with one text, everything else as by default."""
    whole = message = GetMessageClass(kind)()
    for field in way[:-1]:
        message = getattr(message, field.name)
        message = message.add() if field.is_repeated else message
        if not field.is_repeated:
            message.SetInParent()
    if way[-1].is_repeated:
        getattr(message, way[-1].name).append(text)
    else:
        setattr(message, way[-1].name, text)
    return whole


WAYS = [(kind, way) for kind in REQUESTS.values() for way in paths(kind)]
LABELS = [f"{kind.name}-{'.'.join(field.name for field in way)}" for kind, way in WAYS]


def refused(kind: Descriptor, way: tuple[FieldDescriptor, ...], text: str) -> bool:
    """True if the request is refused, with one clean line."""
    try:
        texts.check(message_with(kind, way, WORDS.get(texts.key_of(way[-1]), "{}").format(text)))
    except Refused as error:
        return str(error).isprintable()
    return False


@pytest.mark.parametrize(("kind", "way"), WAYS, ids=LABELS)
def test_every_text_of_every_request_is_checked(kind: Descriptor, way: tuple[FieldDescriptor, ...]) -> None:
    """Plain words pass; control characters do not, and line ends only where a text has lines, or is a program."""
    key = texts.key_of(way[-1])
    assert not refused(kind, way, "word")
    assert refused(kind, way, "a\0b")
    if key in texts.PROGRAMS:
        return
    assert all(refused(kind, way, f"a{letter}b") for letter in ALWAYS)
    is_line = key not in texts.PARAGRAPHS
    assert [refused(kind, way, f"a{letter}b") for letter in IN_LINES] == [is_line] * 3 + [is_line]


def test_there_are_texts_to_check() -> None:
    """The sweep above goes over some hundred fields, those of the job itself among them."""
    assert len(WAYS) > 150
    assert "SubmitBatch-items.spec.tasks.conventions.options" in LABELS


def test_every_exception_is_a_field() -> None:
    """The lists of exceptions name fields that there are, each once."""
    known = {texts.key_of(way[-1]) for _, way in WAYS}
    assert known >= texts.PROGRAMS | texts.PARAGRAPHS | texts.OTHERWISE_BOUNDED
    assert not texts.PROGRAMS & texts.PARAGRAPHS


@pytest.mark.parametrize(
    ("field", "text", "word"),
    [
        ("mail_user", "-bs", "'-bs' is no address"),
        ("mail_user", "ann -oQ/tmp", "'-oQ/tmp' is no address"),
        ("mail_user", "ann,-C/etc/shadow", "'-C/etc/shadow' is no address"),
        ("mail_user", "|/bin/sh", "no address"),
        ("mail_user", "ann <ann@example.org>", "no address"),
        ("project", "p\nUserId=root(0)", "Bad project: it can't hold a line end"),
        ("cwd", "/tmp\x1b[2J", "Bad cwd: it can't hold the control character 0x1b"),
    ],
)
def test_what_is_refused_is_named(field: str, text: str, word: str) -> None:
    """The sentence has the field and what is wrong with it."""
    with pytest.raises(Refused, match=word.replace("[", r"\[")):
        texts.check(jobs_pb2.JobSpec(**{field: text}))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["ann", "ann@example.org", "ann.b+lava@example.org, root", "ann!bob", "a_b@h1 c"])
def test_addresses_of_mail(text: str) -> None:
    """Usual forms of addresses, one or several, pass."""
    texts.check(jobs_pb2.JobSpec(mail_user=text))


@pytest.mark.parametrize(
    ("option", "is_good"),
    [
        ("subdomain=net-1.example", True),
        ("--subdomain=net", True),
        ("subdomain=a\t6.6.6.6", False),
        ("subdomain=a 6.6.6.6", False),
        ("subdomain=a#b", False),
        ("subdomain=" + "a" * 300, False),
        ("ssh-port=22", True),
        ("ssh-port=22 ProxyCommand", False),
        ("ssh-key-file-path=/home/../etc x", False),
        ("cpu.worker-1=4", True),
        ("na me=4", False),
        ("--no-root", True),
    ],
)
def test_options_of_conventions(option: str, is_good: bool) -> None:
    """Those that stand in /etc/hosts or ssh's configuration have the form of what they are there."""
    spec = jobs_pb2.JobSpec()
    spec.tasks.conventions.add(name="jobset", options=[option])
    if is_good:
        texts.check(spec)
        return
    with pytest.raises(Refused, match=r"convention's option|it can't hold"):
        texts.check(spec)


def test_no_text_is_longer_than_what_is_shown() -> None:
    """Each but programs and names, which have their own bounds."""
    with pytest.raises(Refused, match="Bad project: longer than 4094 characters"):
        texts.check(jobs_pb2.JobSpec(project="p" * 100_000))
    texts.check(jobs_pb2.JobSpec(command="c" * 100_000))


@pytest.mark.parametrize("image", ["-v/:/host", "--privileged"])
def test_an_image_is_no_option(image: str) -> None:
    """An image that begins like an option of the container's runtime is refused."""
    spec = jobs_pb2.JobSpec()
    spec.roles.add(image=image)
    with pytest.raises(Refused, match="begins with - like an option"):
        texts.check(spec)


def test_ports_have_names_of_variables() -> None:
    """A port's name is part of the names of variables, in which = would end it."""
    spec = jobs_pb2.JobSpec()
    spec.roles.add().ports.add(name="http=1")
    with pytest.raises(Refused, match="Bad name of a port"):
        texts.check(spec)


def test_marks_of_the_direction_of_writing_are_text() -> None:
    """Names in other scripts pass; what shows them to others makes such marks visible."""
    texts.check(jobs_pb2.JobSpec(name="\u05e9\u05dc\u05d5\u05dd\u200f", project="\u00e9t\u00e9"))
