"""JSON schema of lava's own job file, made from its tables of keys: for editors and for programs that write it."""

from lavactl.job_files.model import EVENTS
from lavactl.job_files.own.keys import TABLES, Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": ["string", "number", "boolean"]}
PAIRS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}
TEXTS = {"type": "array", "items": TEXT}
EVENT = {"enum": sorted(EVENTS)}
KINDS: "dict[str, dict[str, Any]]" = {
    "text": TEXT,
    "flag": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 0},
    "duration": {"type": ["string", "number"], "pattern": r"^([0-9.]+(ms|s|m|h|d))+$|^[0-9.]+$"},
    "texts": TEXTS,
    "lines": {"anyOf": [TEXT, TEXTS]},
    "pairs": PAIRS,
    "codes": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 255}},
    "words": {"anyOf": [EVENT, {"type": "array", "items": EVENT, "minItems": 1}]},
    "conventions": {"type": "object", "additionalProperties": {**PAIRS, "type": ["object", "null"]}},
    "roles": {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/role"}},
    "autoscale": {"$ref": "#/$defs/autoscale"},
    "policies": {"type": "array", "items": {"$ref": "#/$defs/policy"}},
    "ports": {
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/port"}]},
    },
}


def schema() -> "dict[str, Any]":
    """Schema of one document of a job file."""
    return {
        "$schema": DRAFT,
        "title": "Job file of lava",
        **_table("job"),
        "anyOf": [{"required": [name]} for name in ("roles", "command", "script")],
        "$defs": {
            "role": _table("roles"),
            "policy": _table("policies") | {"required": ["do"]},
            "port": _table("ports"),
            "autoscale": _table("autoscale") | {"required": ["metric"]},
        },
    }


def _table(name: str) -> "dict[str, Any]":
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _key(key) for key in TABLES[name]},
    }


def _key(key: Key) -> "dict[str, Any]":
    kind = {"enum": list(key.words)} if key.kind == "word" else KINDS[key.kind]
    return {"description": key.meaning, **kind}
