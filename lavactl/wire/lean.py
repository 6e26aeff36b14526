"""Protocol buffers without the library: enough to send and read small messages.

Importing google.protobuf takes 35 to 45 ms, as long as everything else a command does together. A message class here
has a table of its fields and behaves like the generated one as far as commands use it: keyword construction, attributes
with defaults, repeated fields with ``add``, ``HasField``, ``CopyFrom``, ``SerializeToString``, ``FromString``.

Invariants: tables agree with the .proto files (a test compares them with the generated descriptors); unknown fields are
skipped; a default value is not sent; ``HasField`` of a message whose fields are all default is false.
"""

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

# Kinds of fields; a message class is a kind, too.
TEXT, BYTES, NUMBER, DOUBLE, BOOL, SIGNED = range(6)
_LETTERS = dict(zip("sbudti", range(6), strict=True))
DEFAULTS: "tuple[Any, ...]" = ("", b"", 0, 0.0, False, 0)

_DOUBLE = Struct("<d")
_LENGTHS = {1: 8, 5: 4}


class DecodeError(ValueError):
    """Bytes that are no valid message."""


class Repeated(list):  # type: ignore[type-arg]
    """A repeated field."""

    def __init__(self, kind: "Any", values: "Any" = ()) -> None:
        super().__init__(values)
        self.kind = kind

    def add(self, **values: "Any") -> "Any":
        """Append a new message and return it."""
        made = self.kind(**values)
        self.append(made)
        return made


class Message:
    """Base of all messages.

    ``FIELDS`` maps a number to (name, kind, is repeated), ``NAMES`` a name to (kind, is repeated).
    """

    FIELDS: "dict[int, tuple[str, Any, bool]]"
    NAMES: "dict[str, tuple[Any, bool]]"

    def __init__(self, **values: "Any") -> None:
        for name, value in values.items():
            kind, repeated = self.NAMES[name]
            self.__dict__[name] = Repeated(kind, value) if repeated else value

    def __getattr__(self, name: str) -> "Any":
        """Default of a field that was not set; lists and messages are created, so that they can be filled."""
        known = type(self).NAMES.get(name)
        if known is None:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        kind, repeated = known
        if repeated:
            value: Any = Repeated(kind)
        elif isinstance(kind, int):
            return DEFAULTS[kind]
        else:
            value = kind()
        self.__dict__[name] = value
        return value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def HasField(self, name: str) -> bool:
        """True if a message field has any value but defaults."""
        value = self.__dict__.get(name)
        return value is not None and bool(value.SerializeToString())

    def CopyFrom(self, other: "Self") -> None:
        """Copy all fields of another message."""
        fresh = type(self).FromString(other.SerializeToString())
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)

    def SerializeToString(self) -> bytes:
        """Serialised message."""
        out = bytearray()
        held = self.__dict__
        for number, (name, kind, repeated) in self.FIELDS.items():
            value = held.get(name)
            if not value:
                continue
            if not repeated:
                _put(out, number, kind, value)
            elif kind in (TEXT, BYTES):
                _put_strings(out, number, value if kind == BYTES else [one.encode() for one in value])
            elif not isinstance(kind, int):
                for one in value:
                    _put(out, number, kind, one, always=True)
            elif kind == DOUBLE:
                _put(out, number, BYTES, b"".join(map(_DOUBLE.pack, value)))
            else:
                packed = bytearray()
                for one in value:
                    _put_varint(packed, one)
                _put(out, number, BYTES, packed)
        return bytes(out)

    @classmethod
    def FromString(cls, data: bytes) -> "Self":
        """Parse a message.

        Raises:
            DecodeError: it is truncated or malformed.
        """
        message = cls()
        try:
            _fill(message, data, 0, len(data))
        except (IndexError, UnicodeDecodeError) as error:
            raise DecodeError(f"bad message: {error}") from None
        return message


def table(cls: "type[Message]", text: str, kinds: "dict[str, Any]") -> None:
    """Define the fields of a class: ``number name kind`` each, the kind one of ``s b u d t i`` or the name of a class
    in ``kinds``; ``*`` repeats.
    """
    cls.FIELDS = {}
    for entry in text.split(","):
        number, name, kind = entry.split()
        plain = kind.rstrip("*")
        cls.FIELDS[int(number)] = (name, _LETTERS[plain] if plain in _LETTERS else kinds[plain], kind.endswith("*"))
    cls.NAMES = {name: (kind, repeated) for name, kind, repeated in cls.FIELDS.values()}


def _put(out: bytearray, number: int, kind: "Any", value: "Any", *, always: bool = False) -> None:
    if kind in (NUMBER, BOOL, SIGNED):
        _put_varint(out, number << 3)
        _put_varint(out, int(value))
    elif kind == DOUBLE:
        _put_varint(out, number << 3 | 1)
        out += _DOUBLE.pack(value)
    else:
        data = value.encode() if kind == TEXT else value if kind == BYTES else value.SerializeToString()
        if data or always:
            _put_varint(out, number << 3 | 2)
            _put_varint(out, len(data))
            out += data


def _put_strings(out: bytearray, number: int, values: "list[bytes]") -> None:
    """Put a repeated field; an environment has a hundred entries, most of them shorter than 128 bytes."""
    head = bytearray()
    _put_varint(head, number << 3 | 2)
    for data in values:
        out += head
        if len(data) < 0x80:
            out.append(len(data))
        else:
            _put_varint(out, len(data))
        out += data


def _put_varint(out: bytearray, value: int) -> None:
    if value < 0:
        value += 1 << 64
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, position after it)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise IndexError("a number is too long")


def _fill(message: Message, data: bytes, at: int, end: int) -> None:
    held, fields = message.__dict__, message.FIELDS
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        number, length = 0, 0
        if wire == 0:
            number, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
        elif wire in _LENGTHS:
            length = _LENGTHS[wire]
        else:
            raise IndexError(f"wire type {wire}")
        if at + length > end:
            raise IndexError("cut short")
        field = fields.get(tag >> 3)
        if field is not None:
            _take(held, field, wire, number, data[at : at + length])
        at += length


def _take(held: "dict[str, Any]", field: "tuple[str, Any, bool]", wire: int, number: int, data: bytes) -> None:
    """Store one parsed field: ``number`` of a varint, ``data`` of any other wire type."""
    name, kind, repeated = field
    if repeated and wire == 2 and kind == DOUBLE:
        if len(data) % 8:
            raise IndexError(f"field {name} is cut short")
        held.setdefault(name, Repeated(kind)).extend(one for (one,) in _DOUBLE.iter_unpack(data))
        return
    if repeated and wire == 2 and kind in (NUMBER, BOOL, SIGNED):
        values = held.setdefault(name, Repeated(kind))
        at = 0
        while at < len(data):
            number, at = _varint(data, at)
            values.append(_scalar(kind, number))
        return
    if wire != _WIRE.get(kind, 2):
        raise IndexError(f"field {name} has wire type {wire}")
    value: Any
    if kind in (NUMBER, BOOL, SIGNED):
        value = _scalar(kind, number)
    elif kind == TEXT:
        value = data.decode()
    elif kind == BYTES:
        value = data
    elif kind == DOUBLE:
        value = _DOUBLE.unpack(data)[0]
    else:
        value = kind()
        _fill(value, data, 0, len(data))
    if repeated:
        held.setdefault(name, Repeated(kind)).append(value)
    else:
        held[name] = value


_WIRE = {NUMBER: 0, BOOL: 0, SIGNED: 0, DOUBLE: 1}


def _scalar(kind: int, number: int) -> int:
    if kind == BOOL:
        return bool(number)
    return number - (1 << 64) if kind == SIGNED and number >> 63 else number
