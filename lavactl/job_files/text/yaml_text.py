"""YAML as marked values. PyYAML is imported on the first use: commands that read no job file do not pay for it.

Only plain data is taken: no tags but YAML's own, no mapping with a key twice, no anchor that refers to itself. Texts
stay as they are written: ``1:30`` is no number of seconds and ``on`` no truth value before a field asks for one.
"""

from lavactl.job_files.text.nodes import FileError, Mapping, Node, Null, Place, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    import yaml

NODES_MAX = 200_000  # of one document: aliases could multiply without end
DEPTH_MAX = 60
NO_YAML = "this text is no YAML."
TOO_MUCH = "its values are too many, or nested too deeply."
CORE = "tag:yaml.org,2002:"
SCALAR_TAGS = frozenset(CORE + name for name in ("str", "int", "float", "bool", "timestamp", "value"))


def read_yaml(text: str, file: str) -> list[Node]:
    """Documents of a YAML text; empty documents are left out.

    Raises:
        FileError: it is no YAML, or more than plain data.
    """
    import yaml

    try:
        composed = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FileError(file, place_of(mark), "", f"this is no YAML: {error.problem or error.context}.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FileError(file, Place(line, 1), "", "this is no YAML: special characters are not allowed.") from None
    except RecursionError:
        raise FileError(file, Place(1, 1), "", "this is no job: its values are nested too deeply.") from None
    documents = [_Converter(file).node(one, 0) for one in composed if one is not None]
    return [one for one in documents if not isinstance(one, Null)]


def read_plain(text: str) -> object:
    """Value of a YAML text that stands within a field.

    Raises:
        ValueError: its message says what is wrong.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None and not _is_bounded(root):
            raise ValueError(TOO_MUCH)
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError(NO_YAML) from None
    except RecursionError:
        raise ValueError(TOO_MUCH) from None


def _is_bounded(root: "yaml.Node") -> bool:
    """True if the values are few and not nested too deeply, with those that aliases repeat."""
    import yaml

    waiting, left = [(root, 0)], NODES_MAX
    while waiting:
        node, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEPTH_MAX:
            return False
        if isinstance(node, yaml.SequenceNode):
            waiting += [(one, depth + 1) for one in node.value]
        elif isinstance(node, yaml.MappingNode):
            waiting += [(one, depth + 1) for pair in node.value for one in pair]
    return True


def place_of(mark: "yaml.Mark | None") -> Place:
    """Place of a mark of PyYAML."""
    return Place(mark.line + 1, mark.column + 1) if mark is not None else Place(1, 1)


class _Converter:
    """Conversion of one composed document."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.left = NODES_MAX

    def node(self, node: "yaml.Node", depth: int) -> Node:
        import yaml

        place = place_of(node.start_mark)
        self.left -= 1
        if self.left < 0 or depth > DEPTH_MAX:
            raise FileError(self.file, place, "", "this is no job: its values are too many, or nested too deeply.")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == CORE + "seq":
            return Sequence(place, [self.node(one, depth + 1) for one in node.value])
        if isinstance(node, yaml.MappingNode) and node.tag == CORE + "map":
            return self.mapping(node, place, depth)
        raise FileError(self.file, place, "", f"the tag {node.tag} is not for job files.")

    def scalar(self, node: "yaml.ScalarNode", place: Place) -> Node:
        if node.tag == CORE + "null":
            return Null(place)
        if node.tag not in SCALAR_TAGS:
            raise FileError(self.file, place, "", f"the tag {node.tag} is not for job files.")
        return Scalar(place, node.value, node.style is not None)

    def mapping(self, node: "yaml.MappingNode", place: Place, depth: int) -> Mapping:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[Mapping] = []
        for key, value in node.value:
            at = place_of(key.start_mark)
            if key.tag == CORE + "merge":
                merged += self.merge(value, depth)
                continue
            name = key.value
            if not isinstance(name, str):
                raise FileError(self.file, at, "", "a key must be a text.")
            if name in entries:
                raise FileError(self.file, at, name, f"this key is there twice, first in line {keys[name].line}.")
            entries[name], keys[name] = self.node(value, depth + 1), at
        for one in merged:
            for name, held in one:
                if name not in entries:
                    entries[name], keys[name] = held, one.keys[name]
        return Mapping(place, entries, keys)

    def merge(self, node: "yaml.Node", depth: int) -> list[Mapping]:
        """Mappings that ``<<`` names: one, or a list of them."""
        value = self.node(node, depth + 1)
        found = value.items if isinstance(value, Sequence) else [value]
        mappings = [one for one in found if isinstance(one, Mapping)]
        if len(mappings) < len(found):
            raise FileError(self.file, value.place, "<<", "expected a mapping or a list of mappings.")
        return mappings
