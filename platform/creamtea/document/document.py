"""A YAML study file as plain values, each with its place in the file.

YAML's core schema (1.2) applies: only `true` and `false` are booleans, so that `no` can be a language, and
`1e-5` is a number. Aliases and merge keys (`<<`) work, within a bound on their expansion; tags that name
types do not. The result has only text, numbers, booleans, nulls, lists and blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from creamtea.document.mistakes import (
    REQUIRED,
    KeyPath,
    Mistake,
    Place,
    StudyErrors,
    dotted,
    mistakes_in_line,
    mistakes_of_pydantic,
    one_of,
    shown,
)
from creamtea.document.values import parse_json
from creamtea.errors import InputError
from creamtea.files import decode, lines_of, open_regular, read_text
from creamtea.wording import file_name, key_name

MAX_BYTES = 1_000_000
MAX_VALUES = 50_000  # after aliases are expanded
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")  # databases refuse what these escapes write
TAG = "tag:yaml.org,2002:"


@dataclass
class YamlDocument:
    """A parsed file: its values, and the place of each.

    `places` has the place of every value of `data`, by its path. `begun` lists blocks that an override
    created and that are not in the file.
    """

    name: str
    data: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    begun: list[KeyPath] = field(default_factory=list)

    def misnamed(self, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
        """Report entries that an override created and that lack required keys.

        Such an entry is probably a misspelt name. `mistakes` have the paths of the file.
        """
        for path in self.begun:
            lacks = any(
                mistake.path[: len(path)] == path and mistake.allowed.startswith(REQUIRED)
                for mistake in mistakes
            )
            if len(path) == 2 and lacks:
                section, name = map(str, path)
                others = [other for other in self.data[section] if other != name]
                allowed = one_of(others, name, what=f"an entry of {section}, or a new one with all it needs")
                yield Mistake(path, f"{shown(name)}, not in the study", allowed, settled=True)

    def part(self, path: KeyPath, data: dict[str, Any]) -> YamlDocument:
        """Return the block at `path` as a separate document. `data`: its values, with inherited ones."""
        inside = {
            place[len(path) :]: where for place, where in self.places.items() if place[: len(path)] == path
        }
        return YamlDocument(self.name, data, inside)

    def place(self, path: KeyPath) -> Place:
        """Return the place of a value, or of the innermost block around it that is in the file."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1, f"{self.name}:1"))


class BrokenYaml(Exception):
    """The parser refused the text. `args`: (line, problem)."""


class CoreLoader(yaml.SafeLoader):
    """SafeLoader's parser with the resolvers of YAML's core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.")),
    ("merge", r"<<", ["<"]),
):
    CoreLoader.add_implicit_resolver(TAG + _tag, re.compile(rf"^(?:{_pattern})$"), _first)


def read_document(
    path: Path, keys: str = "name, languages, corpora, …", name: str = "", kind: str = "a study (.yaml)"
) -> YamlDocument:
    """Read and parse a YAML file.

    `name`: the file's name in messages, instead of its path. `kind`: a noun for the expected file, for
    messages.

    Mistakes that leave the rest readable (a key written twice) are collected in `YamlDocument.mistakes`.
    Raises InputError if the file cannot be read, StudyErrors if it is not YAML.
    """
    name = name or file_name(path)

    def place_of(node: yaml.Node) -> Place:
        line = node.start_mark.line + 1
        return Place(line, f"{name}:{line}", node.start_mark.column)

    try:
        root = _compose(_text(path, kind))
    except BrokenYaml as error:
        line, problem = error.args
        mistake = Mistake((), problem, "valid YAML", place=Place(line, f"{name}:{line}"))
        raise StudyErrors([mistake.line()], name) from None
    if not isinstance(root, yaml.MappingNode):
        mistake = Mistake(
            (),
            "an empty file" if root is None else _node_name(root),
            f"a block of keys ({keys})",
            place=Place(1, f"{name}:1"),
        )
        raise StudyErrors([mistake.line()], name)
    builder = _Builder(place_of, name)
    return YamlDocument(name, builder.build(root, ()), builder.places, builder.mistakes)


_ENTRY = re.compile(r"\[(\d+)\]")


def apply_override(document: YamlDocument, text: str, order: int) -> None:
    """Set one `key=value` in the document: a dotted path into the file, a value in YAML.

    An entry of a list is `metrics.0`, or `metrics[0]` as in mistakes. A path that the file lacks is added;
    the validation decides if it may exist. `order` numbers the overrides, so that their mistakes are listed
    in the order of the command line.
    """
    place = Place(10**9 + order, f"--set {text}")
    key, equals, written = text.partition("=")
    parts = _ENTRY.sub(r".\1", key).split(".")
    if not equals or not all(parts):
        allowed = "key=value, where a dotted key leads into blocks (block.key=value)"
        document.mistakes.append(Mistake((), shown(text), allowed, place=place))
        return
    path: KeyPath = ()
    parent: Any = document.data
    while True:
        step, parts = _next_step(parent, parts)
        if step is None:
            is_list = isinstance(parent, list)
            allowed = f"an entry from 0 to {len(parent) - 1}" if is_list else "a block of keys"
            allowed = "a whole list, as this one is empty" if parent == [] else allowed
            found = f"entry {parts[0]}" if is_list else shown(parent)
            document.mistakes.append(Mistake(path, found, allowed, place=place))
            return
        path = (*path, step)
        if not parts:
            break
        if isinstance(parent, dict) and parent.get(step) is None:
            if parts[0].isdecimal():
                found, allowed = "no such list in the file", f"the whole list: --set '{dotted(path)}=[…]'"
                document.mistakes.append(Mistake(path, found, allowed, place=place))
                return
            parent[step] = {}
            document.places[path] = place
            document.begun.append(path)
        parent = parent[step]
    try:
        root = _compose(written)
    except BrokenYaml as error:
        document.mistakes.append(Mistake(path, error.args[1], "a value in YAML", place=place))
        return
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
    builder = _Builder(lambda node: place, document.name)
    parent[step] = None if root is None else builder.build(root, path)
    document.places |= {path: place, **builder.places}
    document.mistakes += builder.mistakes


def _next_step(parent: Any, parts: list[str]) -> tuple[str | int | None, list[str]]:
    """Split the first key or index of `parent` off `parts`; return it and the other parts.

    Names may contain dots.
    """
    if isinstance(parent, list):
        inside = parts[0].isdecimal() and int(parts[0]) < len(parent)
        return (int(parts[0]), parts[1:]) if inside else (None, parts)
    if not isinstance(parent, dict):
        return None, parts
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in parent:
            return name, parts[length:]
    return parts[0], parts[1:]


def _text(path: Path, kind: str) -> str:
    try:
        with open_regular(path) as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{file_name(path)}: no such file; give the path of {kind}") from None
    except OSError as error:
        raise InputError(f"{file_name(path)}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        limited = kind.partition(" (")[0]  # without the file's ending
        raise InputError(f"{file_name(path)}: larger than {MAX_BYTES:,} bytes, the limit for {limited}")
    return decode(content, file_name(path))


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=CoreLoader)
    except yaml.MarkedYAMLError as error:
        raise BrokenYaml(*explained(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BrokenYaml(line, f"the control character {chr(error.character)!r}") from None
    except RecursionError:
        raise BrokenYaml(1, "blocks nested too deeply") from None


def _node_name(node: yaml.Node) -> str:
    if isinstance(node, yaml.CollectionNode):
        return "a block of keys" if isinstance(node, yaml.MappingNode) else "a list"
    return "a single value"


class _Builder:
    """Turns nodes into values; notes the place of each value, and all mistakes."""

    def __init__(self, place_of: Callable[[yaml.Node], Place], name: str) -> None:
        self.place_of, self.name = place_of, name
        self.places: dict[KeyPath, Place] = {}
        self.mistakes: list[Mistake] = []
        self._values = 0
        self._open: set[int] = set()  # the nodes being built, to find an alias inside itself

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise InputError(f"{self.name}: its aliases expand to more than {MAX_VALUES:,} values")
        self.places.setdefault(path, self.place_of(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._mistake(
                node, path, "an alias inside the value that it stands for", "an alias of something else", True
            )
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [self.build(entry, (*path, index)) for index, entry in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == TAG + "merge":
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            elif key_node.tag != TAG + "str":
                self._mistake(key_node, path, f"the key {_written(key_node)}", "text as a key (quote it)")
            elif (key := key_node.value) in result:
                first = self.places[(*path, key)].order
                found = f"the key a second time (first in line {first})"
                self._mistake(key_node, (*path, key), found, "each key once")
            else:
                # merged blocks (<<) are built last, so a key that overrides a merged one keeps its place
                self.places.setdefault((*path, key), self.place_of(key_node))
                result[key] = self.build(value_node, (*path, key))
        for source in merged:
            if isinstance(source, yaml.MappingNode):
                result = {**(self.build(source, path) or {}), **result}  # None: an alias inside itself
            else:
                self._mistake(source, path, f"<< with {_node_name(source)}", "<< with a block of keys")
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text: str = node.value
        match node.tag.removeprefix(TAG):
            case "str" if not CONTROL.search(text):
                return text
            case "null":
                return None
            case "bool" if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case "int" if re.fullmatch(r"[-+]?[0-9]{1,30}", text):
                return int(text)
            case "float" if re.fullmatch(r"[-+.0-9eEinfaINFA]+", text):
                with suppress(ValueError):  # `!!float a`
                    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        allowed = "text, a number, true, false, null, a list or a block of keys"
        self._mistake(node, path, _written(node), allowed, settled=True)
        return None

    def _mistake(
        self, node: yaml.Node, path: KeyPath, found: str, allowed: str, settled: bool = False
    ) -> None:
        self.mistakes.append(Mistake(path, found, allowed, self.place_of(node), settled))


def _written(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return _node_name(node)
    kind = node.tag.removeprefix(TAG)
    if CONTROL.search(node.value):
        return f"a control character in {node.value[:40]!r}"
    if kind in ("str", "null", "bool", "int", "float"):
        return str(node.value[:40])
    return f"{node.tag.replace(TAG, '!!')} {node.value[:40]}".strip()


Model = TypeVar("Model", bound=BaseModel)
# ---------------------------------------------------------------- files as models

MAX_LINES_BYTES = 200_000_000  # the largest file of JSON Lines


def read_checked(path: Path, model: type[Model], keys: str, kind: str) -> Model:
    """Read a file of YAML or JSON as `model`.

    `keys`: example keys for the message about a file without keys. `kind`: a noun for the expected file, for
    messages.

    Raises InputError if the file cannot be read, StudyErrors with the line of every mistake, including keys
    written twice.
    """
    document = read_document(path, keys, kind=kind)
    mistakes = list(document.mistakes)
    try:
        read = model.model_validate(document.data)
    except ValidationError as error:
        mistakes += mistakes_of_pydantic(error.errors(), model, document.data)
    if mistakes:
        raise StudyErrors([mistake.line(document.place(mistake.path)) for mistake in mistakes], document.name)
    return read


def read_lines(path: Path, model: type[Model], name: str) -> list[tuple[str, Model]]:
    """Read a file of JSON Lines: each line that is not blank, with its place ("list.jsonl, line 3").

    `name`: the key that names the file, for messages. Raises InputError if the file cannot be read, or with a
    line's place and all its mistakes if the line does not fit the model.
    """
    where = f"{key_name(name)}: {file_name(path)}"
    text = read_text(path, where, MAX_LINES_BYTES, "give a list in JSON Lines, saved as UTF-8")
    records = []
    for number, line in enumerate(lines_of(text, where), start=1):
        if line.strip():
            place = f"{path.name}, line {number}"
            value = parse_json(line, place)
            try:
                records.append((place, model.model_validate(value)))
            except ValidationError as error:
                raise InputError(f"{place}: {mistakes_in_line(error, model, value)}") from None
    return records


# ---------------------------------------------------------------- errors of the YAML parser, in words

# A pattern for the parser's context and problem, and its explanation; {0} is the first group.
EXPLANATIONS = (
    (r"'\\t'", "a tab where there must be spaces"),
    (r"quoted scalar.*unexpected end of stream", "a quote that is not closed"),
    (r"unknown escape character (.+)", "the escape \\{0} in double quotes; single quotes take text as it is"),
    (r"flow sequence.*expected ',' or '\]'", "a list that is not closed: a comma or ] is missing"),
    (r"flow mapping.*expected ',' or '\}'", "a block that is not closed: a comma or }} is missing"),
    (r"found undefined alias (.+)", "the alias *{0}, which no &{0} above it defines"),
    (r"duplicate anchor (.+?);", "a second anchor &{0}; each needs a name of its own"),
    (r"found character (.+) that cannot start", "text that begins with {0}; put it into quotes"),
    (r"mapping values are not allowed", "a second colon in a line, or a line that is indented too far; "
     "text with a colon needs quotes"),
    (r"could not find expected ':'", "a line without a colon between key and value"),
    (r"block (?:mapping|collection).*but found", "a line whose indentation or kind differs from the lines "
     "before it"),
    (r"expected a single document", "a second document after ---; a file has one"),
    (r"expected the node content", "a bracket, a comma or a mark where there must be a value"),
)  # fmt: skip


def explained(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """Return the line of a parser's error, from 1, and an explanation.

    A construct that is not closed is reported where it begins.
    """
    message = " ".join(filter(None, (error.context, error.problem))) or "unreadable"
    for pattern, meaning in EXPLANATIONS:
        if match := re.search(pattern, message, re.DOTALL):
            words = [group.strip("'\"") for group in match.groups()]
            explanation = meaning.format(*words)
            break
    else:
        explanation = f"broken YAML ({message})"
    marks = [error.problem_mark, error.context_mark]
    if "not closed" in explanation:
        marks.reverse()
    mark = next((mark for mark in marks if mark is not None), None)
    return 1 if mark is None else mark.line + 1, explanation
