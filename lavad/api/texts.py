"""Characters of the texts in a request: what no program takes for the end of a line, of a field or of an option.

Texts of users end in files that root writes, in command lines, mails and logs, and on the terminals of others. So each
text of a request is a line, unless its field is listed here, and the forms of those that others parse are checked at
the master's door, whatever program sent them.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lavad.core.model.reasons import Refused

TEXT_MAX = 4094
# Texts with a bound of their own: a script may be long, and a job's name has its own error message.
OTHERWISE_BOUNDED = frozenset({"JobSpec.command", "JobSpec.name", "JobFilter.name", "Role.command"})
# Programs and their words, which only a shell or the program itself reads.
PROGRAMS = frozenset({
    "JobSpec.command", "JobSpec.pre_exec", "JobSpec.post_exec", "JobSpec.resize_notify", "JobSpec.warning_action",
    "JobSpec.script_arguments", "SlurmTerms.arguments", "Role.command", "Role.argv", "Autoscale.command",
    "ResizeRequest.notify",
})  # fmt: skip
# Texts of several lines: what people write for people, and expressions in which a line end is a blank.
PARAGRAPHS = frozenset({
    "JobSpec.description", "JobSpec.dependency", "JobSpec.requirement_text", "Role.requirement", "GpuRequest.text",
    "HostFile.requirement", "JobMessage.text", "ResizeRequest.what", "WaitRequest.condition",
    "SlotsRequest.requirement", "HostsRequest.requirement", "ReserveRequest.requirement",
    "ReserveRequest.description", "SignalRequest.reason", "ControlRequest.comment", "ConfigureRequest.comment",
})  # fmt: skip
_STRING = FieldDescriptor.TYPE_STRING
# Line ends of Unicode, too; marks of the direction of writing are text, and made visible where they are shown.
_NOT_IN_LINES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_IN_PARAGRAPHS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ADDRESS = re.compile(r"[^-\s,<>()\[\]:;\"\\|][^\s,<>()\[\]:;\"\\|]*")
_HOST_NAME = re.compile(r"[A-Za-z0-9_~]([A-Za-z0-9._~-]{0,252})")
_PORT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,254}")
_OPTION_NAME = re.compile(r"-{0,2}[A-Za-z0-9_][A-Za-z0-9._~-]{0,511}")


def check(message: Message) -> None:
    """Refuse texts anywhere in a message that are too long, or hold what their field cannot.

    Raises:
        Refused: names the field, and what it can't hold.
    """
    kinds = _kinds_of(message.DESCRIPTOR)
    for field, value in message.ListFields():
        if field.number not in kinds:
            continue
        kind = kinds[field.number]
        if kind == _PLAIN and value.isprintable() and len(value) <= TEXT_MAX:  # nearly all: jobs of a batch pay for it
            continue
        for part in value if field.is_repeated else (value,):
            if kind == _PART:
                check(part)
            else:
                _check_text(field, part, message)


_PLAIN, _OTHER, _PART = "one text, in no form of its own", "texts", "messages with texts"


@cache
def _kinds_of(descriptor: Descriptor) -> dict[int, str]:
    """Return what the fields with texts of a kind of messages have, by number."""
    found: dict[int, str] = {}
    for field in descriptor.fields:
        if field.type == _STRING:
            found[field.number] = _OTHER if field.is_repeated or key_of(field) in _FORMS else _PLAIN
        elif field.message_type is not None and has_texts(field.message_type):
            found[field.number] = _PART
    return found


@cache
def has_texts(descriptor: Descriptor) -> bool:
    """Return True if messages of this kind, or their parts, have texts."""
    return any(True for _ in texts_of(descriptor))


def texts_of(descriptor: Any, above: tuple[Any, ...] = ()) -> Iterator[FieldDescriptor]:
    """Yield the fields with texts of a kind of messages and of its parts."""
    for field in descriptor.fields:
        if field.type == _STRING:
            yield field
        elif field.message_type is not None and field.message_type not in (*above, descriptor):
            yield from texts_of(field.message_type, (*above, descriptor))


def key_of(field: FieldDescriptor) -> str:
    """Return MESSAGE.FIELD, by which the tables here name a field."""
    return ".".join(field.full_name.split(".")[-2:])


def _check_text(field: FieldDescriptor, text: str, message: Any) -> None:
    key = key_of(field)
    if "\0" in text and not (key == "JobSpec.command" and message.is_script):
        raise Refused(f"Bad {field.name}: it can't hold a NUL character")
    if len(text) > TEXT_MAX and key not in OTHERWISE_BOUNDED:
        raise Refused(f"Bad {field.name}: longer than {TEXT_MAX} characters")
    if key not in PROGRAMS and not text.isprintable():
        _check_characters(field, text, key)
    if key in _FORMS and text:
        _FORMS[key](text)


def _check_characters(field: FieldDescriptor, text: str, key: str) -> None:
    found = (_NOT_IN_PARAGRAPHS if key in PARAGRAPHS else _NOT_IN_LINES).search(text)
    if found is not None:
        what = "a line end" if found[0] in "\n\r\u2028\u2029" else f"the control character {ord(found[0]):#04x}"
        raise Refused(f"Bad {field.name}: it can't hold {what}")


def _check_addresses(text: str) -> None:
    for address in text.replace(",", " ").split():
        if not _ADDRESS.fullmatch(address):
            raise Refused(f"Bad mail_user: {address[:80]!r} is no address such as ann or ann@example.org")


def _check_image(text: str) -> None:
    if text.startswith("-"):
        raise Refused(f"Bad image: {text[:80]!r} begins with - like an option")


def _check_port(text: str) -> None:
    if not _PORT_NAME.fullmatch(text):
        raise Refused(f"Bad name of a port: {text[:80]!r}: it takes letters, digits and . _ ~ -")


def _check_option(text: str) -> None:
    name, _, value = text.partition("=")
    if not _OPTION_NAME.fullmatch(name):
        raise Refused(f"Bad name of a convention's option: {name[:80]!r}: it takes letters, digits and . _ ~ -")
    form = _OPTIONS.get(name.lstrip("-"))
    if form is not None and value and not form[0].fullmatch(value):
        raise Refused(f"Bad value of a convention's option {name.lstrip('-')}: {value[:80]!r} is no {form[1]}")


_FORMS: dict[str, Callable[[str], None]] = {
    "JobSpec.mail_user": _check_addresses,
    "Role.image": _check_image,
    "PortRequest.name": _check_port,
    "Convention.options": _check_option,
}
# Options whose values stand in files that other programs parse: host names in /etc/hosts, and ssh's configuration.
_OPTIONS = {
    "subdomain": (_HOST_NAME, "host name"),
    "ssh-port": (re.compile(r"[0-9]{1,5}"), "port"),
    "ssh-key-file-path": (re.compile(r"(/[^/\s]+)+/?"), "full path"),
}
