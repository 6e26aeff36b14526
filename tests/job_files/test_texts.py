"""Texts of job files: YAML and JSON as values that know their place, with the liberties that real files take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavactl.errors import CommandError
from lavactl.job_files.text.documents import read_documents
from lavactl.job_files.text.durations import duration_text, read_duration
from lavactl.job_files.text.nodes import Mapping, Node, Null, Scalar, Sequence
from lavactl.job_files.text.yaml_text import read_plain
from lavactl.job_files.understanding import understand_text


def plain(node: Node) -> object:
    """A value without its places."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node}
    if isinstance(node, Sequence):
        return [plain(one) for one in node.items]
    assert isinstance(node, Scalar | Null)
    return node.text if isinstance(node, Scalar) else None


def test_json_with_what_portals_took() -> None:
    """Comments, line breaks and unknown escapes in strings, a comma too many, a byte order mark."""
    text = '\ufeff// first\n{ # second\n"a": "one\ntwo \\$x \\<y\\> \\u00e9 \\ud83d\\ude00", /* third\n */ '
    text += '"b": [1, 2.5, true, null,],\n}'
    (document,) = read_documents(text, "f")
    assert plain(document) == {"a": "one\ntwo $x <y> é 😀", "b": ["1", "2.5", "true", None]}
    assert document.keys["b"] == (5, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, "its values are too many, or nested too deeply."),
        ("a: &a [*a]", "its values are too many, or nested too deeply."),
        ("\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else ['x'])}]" for n in range(9)),
         "its values are too many, or nested too deeply."),
        ("a: b: c", "this text is no YAML."),
    ],
)  # fmt: skip
def test_texts_within_a_field(text: str, said: str) -> None:
    """Depth and size are bounded, with what aliases repeat."""
    with pytest.raises(ValueError, match=r".") as refusal:
        read_plain(text)
    assert str(refusal.value) == said
    assert read_plain("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}


def test_several_documents() -> None:
    """YAML's separators, JSON's documents after each other or in a list; empty ones do not count."""
    assert len(read_documents("---\na: 1\n---\n---\nb: 2\n---\n", "f")) == 2
    assert len(read_documents('{"a": 1}\n{"b": 2}', "f")) == 2
    assert len(read_documents('[{"a": 1}, {"b": 2}]', "f")) == 2


def test_values_stay_as_written() -> None:
    """YAML 1.1 would take 1:30 for ninety seconds, on for a truth value and 0022 for eighteen."""
    (document,) = read_documents("a: 1:30\nb: on\nc: 0022\nd: ~\ne: '~'\nf: 2026-01-01\n", "f")
    assert plain(document) == {"a": "1:30", "b": "on", "c": "0022", "d": None, "e": "~", "f": "2026-01-01"}


def test_anchors_and_merged_keys() -> None:
    """A mapping's own keys win over merged ones."""
    (document,) = read_documents("base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\n", "f")
    assert plain(document) == {"base": {"x": "1", "y": "2"}, "made": {"y": "3", "x": "1"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2\n", "f:2:2: this is no YAML: expected ',' or ']', but got ':'."),
        ("a: 1\n  b: 2\n", "f:2:4: this is no YAML: mapping values are not allowed here."),
        ("a: 1\na: 2\n", "f:2:1: a: this key is there twice, first in line 1."),
        ("a: !!python/object:os.system x\n", "f:1:4: the tag tag:yaml.org,2002:python/object:os.system is not for"),
        ("a: &a [*a]\n", "f:1:4: this is no job: its values are too many, or nested too deeply."),
        ("- 1\n", "f:1:1: expected a job, that is keys and values, found a list."),
        ("just text\n", "f:1:1: expected a job, that is keys and values, found just text."),
        ("", "f:1:1: there is no job in this file."),
        ("a: 1\0\n", "f:1:1: there is a NUL character: this is no text."),
        ('{"a": 1\n "b": 2}', "f:2:2: this is no JSON: expected a comma or '}', found '\"'."),
        ('{"a": nope}', "f:1:7: this is no JSON: expected a value, found 'n'."),
        ('{"a": "x', "f:1:7: this is no JSON: this string has no end."),
        ('{"a": "\\ud83d"}', "f:1:8: this is no JSON: half a character (a lone surrogate)."),
        ('{"a": 1, "a": 2}', "f:1:10: a: this key is there twice, first in line 1."),
        ('{"a": 01}', "f:1:7: this is no JSON: expected a value, found '0'."),
        ('{"a": 1} x', "f:1:10: this is no JSON: expected a value, found 'x'."),
    ],
)
def test_malformed_texts(text: str, said: str) -> None:
    """One sentence with file, line and column."""
    with pytest.raises(CommandError) as error:
        read_documents(text, "f")
    assert str(error.value).startswith(said)


def test_aliases_do_not_multiply_without_end() -> None:
    """Nine lines that stand for a thousand million values are refused in little time."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(CommandError, match="too many"):
        read_documents("\n".join(lines), "f")


@given(st.text(max_size=200))
def test_any_text_is_a_job_or_an_error_with_its_place(text: str) -> None:
    """No text leads to any other exception."""
    for start in ("", "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n", "command: x\n", '{"jobName": "x", '):
        said = ""
        try:
            understand_text(start + text, "f")
        except CommandError as error:
            said = str(error)
        assert not said or said.startswith("f:")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("2d", 172800), ("1.5h", 5400), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    """A plain number is of seconds; parts add up; what is written is read as the same."""
    assert read_duration(text) == seconds
    assert read_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "s", "1x", "-1s", "1h m", "1e3", "99999999999d"])
def test_no_durations(text: str) -> None:
    """Everything else is none."""
    with pytest.raises(ValueError, match=r".*"):
        read_duration(text)
