"""A study's mistakes and warnings, the error that shows all mistakes, and the raw study that checks read."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, Tag, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from creamtea.errors import InputError
from creamtea.wording import counted

KeyPath = tuple[str | int, ...]
PlaceOf = Callable[[KeyPath], str]  # returns the place of a study's value, for messages


@dataclass(frozen=True, order=True)
class Place:
    order: int  # line number; overrides come after all lines
    text: str  # "studies/x.yaml:12" or "--set key=value"
    column: int | None = field(default=None, compare=False)  # where the value begins in that line


@dataclass(frozen=True)
class Mistake:
    """A mistake at `path` of the expanded study. If `found` is "", `allowed` is the whole message."""

    path: KeyPath
    found: str
    allowed: str
    place: Place | None = None  # if it differs from the place of `path`
    # it explains all that is wrong with this value: others at or below it are not shown
    settled: bool = False

    def line(self, place: Place | None = None) -> str:
        """Return the message, with the mistake's place, or `place` if it has none."""
        where = self.place or place
        prefix = f"{where.text}: " if where else ""
        key = f"{dotted(self.path)}: " if self.path else ""
        found = f"found {self.found}, allowed " if self.found else ""
        return f"{prefix}{key}{found}{self.allowed}"


class StudyErrors(InputError):
    """Every mistake of a document: one line each, then their number.

    `by_key`: mistakes by setting, for pages that have a field for it.
    """

    def __init__(self, lines: Sequence[str], name: str, by_key: Mapping[str, str] | None = None) -> None:
        self.lines = list(dict.fromkeys(lines))
        self.by_key = by_key or {}
        count = f"{counted(len(self.lines), 'mistake')} in {name}"
        super().__init__("\n".join([*self.lines, count]), next(iter(self.by_key), ""))


@dataclass(frozen=True)
class StudyWarning:
    """Something about a study or its results that deserves a look. It never changes an exit code."""

    kind: str  # for scripts: "warm-up", "few-updates", …
    place: str  # "study.yaml:12: variants.softmax.training", or words: "softmax, seed 1"
    found: str
    remedy: str

    def line(self) -> str:
        return f"{self.place}: {self.message()}"

    def message(self) -> str:
        return f"{self.found}. {self.remedy}"

    def values(self) -> dict[str, Any]:
        return asdict(self)


# ---------------------------------------------------------------- wording


def dotted(path: KeyPath) -> str:
    """Write ("metrics", 0, "kind") as metrics[0].kind."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """Write a value for a message, as in the file but shortened."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a block of keys"
        case list():
            return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def one_of(names: Iterable[str], wrong: object = None, what: str = "") -> str:
    """Write "one of a, b, c (did you mean b?)"; the guess only if `wrong` is close to a name."""
    names = list(names)
    if not names:
        return f"{what}: none" if what else "nothing"
    listed = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    prefix = f"{what}: " if what else "one of " if len(names) > 1 else ""
    guess = difflib.get_close_matches(wrong, names, n=1) if isinstance(wrong, str) else []
    return f"{prefix}{listed}" + (f" (did you mean {guess[0]}?)" if guess else "")


NAME_RULE = "a name of letters, digits and . _ = , + - (letter or digit first, 120 at most)"
PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._=,+-]*$": NAME_RULE,
    r"^[a-z]+(-[a-z]+)*--[a-z]+(-[a-z]+)*$": "two languages in small letters (latin--czech)",
    r"^[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*$": "a language code (en, deu, zh-CN)",
}
ALLOWED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a block of keys",
    "model_type": "a block of keys",
    "model_attributes_type": "a block of keys with a kind",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "text that is not empty",
    "string_too_long": "at most {max_length} characters",
    "amount": "a number of items, or a share below 1 (0.1 for a tenth)",
    "too_long": "at most {max_length} entries",
}
REQUIRED = "required key is missing"
UNKNOWN = "an unknown key"


def mistakes_in_line(error: ValidationError, model: type[BaseModel], data: Any) -> str:
    """Return every mistake in a value as one line, for a message that names the place."""
    mistakes = mistakes_of_pydantic(error.errors(), model, data)
    return "; ".join(dict.fromkeys(mistake.line() for mistake in mistakes))


def mistakes_of_pydantic(
    errors: Sequence[ErrorDetails], model: type[BaseModel], data: Any
) -> Iterator[Mistake]:
    """Turn pydantic's errors into mistakes of a study."""
    for error in errors:
        path, rest = _path(error["loc"], data)
        kind, context, value = error["type"], error.get("ctx", {}), error["input"]
        if rest == ("[key]",):  # the key itself is wrong, not its value
            value = path[-1]
        bounds = {
            key: number(bound) if isinstance(bound, float | int) else bound for key, bound in context.items()
        }
        found, allowed = shown(value), ALLOWED.get(kind, "").format(**bounds)
        if kind == "extra_forbidden":
            found = UNKNOWN
            block = _type_at(model, error["loc"][:-1])
            keys = fields_by_key(block) if isinstance(block, type) and issubclass(block, BaseModel) else ()
            allowed = one_of(sorted(keys, key=lambda key: key != "kind"), path[-1])
        elif kind == "missing":
            path, found, allowed = (*path, *rest[-1:]), "", REQUIRED
        elif kind == "union_tag_not_found":
            path, found = (*path, "kind"), ""
            allowed = f"{REQUIRED}: {one_of(_members(_type_at(model, error['loc'])))}"
        elif kind == "union_tag_invalid":
            path, found = (*path, "kind"), shown(context["tag"])
            union = _type_at(model, error["loc"])
            allowed = one_of(_members(union), context["tag"])
            if hasattr(union, "family"):  # the family knows broken plug-ins with this kind
                allowed += union.family.hint(context["tag"])
        elif kind == "model_type":
            block = _type_at(model, error["loc"])
            if isinstance(block, type) and issubclass(block, BaseModel):
                first = ", ".join([*fields_by_key(block)][:4])
                allowed += f" ({first}{', …' if len(fields_by_key(block)) > 4 else ''})"
        elif kind == "list_type" and isinstance(value, str | int | float) and len(str(value)) <= 40:
            if _is_yaml_of(f"[{value}]", _annotation_at(model, error["loc"])):
                allowed += f" ([{value}])"
        elif kind == "string_type" and isinstance(value, int | float):
            allowed += " (in quotes)"
        elif kind == "literal_error":
            allowed = one_of(map(str, get_args(_type_at(model, error["loc"]))), value)
        elif kind == "string_pattern_mismatch":
            allowed = PATTERNS[context["pattern"]]
        elif kind == "too_short":
            least = context["min_length"]
            allowed = "at least 1 entry" if least == 1 else f"at least {least} entries"
        elif kind == "value_error":
            allowed = str(context["error"])
            if not isinstance(value, dict | list):
                allowed = f"found {found}, {allowed}"
            found = ""
        yield Mistake(path, found, allowed or "a value of another type")


def _is_yaml_of(text: str, kind: Any) -> bool:
    """Return True if YAML reads the text as a list that the type accepts."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    has_truth = any(isinstance(one, bool) for one in value)
    return bool(value) and not has_truth and parsed(kind, value) is not None


def number(value: float) -> str:
    """Write a bound for people: 1,000 for 1000.0 and 0.000001 for 1e-06."""
    return f"{Decimal(repr(value)).normalize():,f}"


def _path(loc: KeyPath, data: Any) -> tuple[KeyPath, KeyPath]:
    """Split pydantic's location into the path in the data and the rest.

    The location also has the kinds of unions. These are not keys of the data, and are omitted from the path.
    The last part is never a kind: it may be a missing key.
    """
    path: KeyPath = ()
    for position, part in enumerate(loc):
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if inside:
            path, data = (*path, part), data[part]
        elif not (isinstance(data, dict) and data.get("kind", part) == part and position + 1 < len(loc)):
            return path, tuple(loc[position:])
    return path, ()


# ---------------------------------------------------------------- the spec's types, along a location


def fields_by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the keys that a document uses for them."""
    by_alias = model.model_config.get("validate_by_alias", True)
    fields = model.model_fields.items()
    return {(field.alias if by_alias and field.alias else name): field for name, field in fields}


def _type_at(kind: Any, loc: KeyPath) -> Any:
    """Return the type at a pydantic location (of field names, dict keys, list indices and kinds)."""
    return _plain(_annotation_at(kind, loc))


def _annotation_at(kind: Any, loc: KeyPath) -> Any:
    """Return the type at a pydantic location; a field's type has the field's bounds."""
    for part in loc:
        kind = _plain(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and "family" not in vars(kind):
            field = fields_by_key(kind)[str(part)]
            kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        elif get_origin(kind) in (dict, Mapping, list):
            kind = get_args(kind)[-1]
        else:
            kind = _members(kind)[str(part)]
    return kind


def _plain(kind: Any) -> Any:
    """Remove Annotated and `| None` from a type."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind):
            (kind,) = [member for member in get_args(kind) if member is not type(None)]
        else:
            return kind


def _members(union: Any) -> Mapping[str, type[BaseModel]]:
    """Return the models of a union, or of a family of methods, by kind."""
    if hasattr(union, "family"):
        kinds: Mapping[str, type[BaseModel]] = union.family.kinds
        return kinds
    members = {}
    for member in get_args(union):
        if tags := [data.tag for data in getattr(member, "__metadata__", ()) if isinstance(data, Tag)]:
            members[tags[0]] = get_args(member)[0]
            continue
        kind = member.model_fields["kind"].annotation
        assert get_origin(kind) is Literal
        members[get_args(kind)[0]] = member
    return members


# ---------------------------------------------------------------- a study that may be malformed


T = TypeVar("T")
Block = dict[str, Any]
Groups = dict[str, dict[str, list[str]]]  # the members of grids: section, grid (`creamtea.study.grid`)

NOUNS = {
    "corpora": "a corpus",
    "subwords": "subwords",
    "variants": "a variant",
    "systems": "a system",
    "test_sets": "a test set",
}


@dataclass(frozen=True)
class RawStudy:
    """A study as written, with its grids expanded.

    Checks read it instead of the validated study, so that they find their mistakes even if another part is
    malformed. A check skips malformed parts, which the validation reports.
    """

    data: Block
    groups: Groups

    def blocks(self, section: str) -> Iterator[tuple[str, Block]]:
        """Yield the well-formed entries of a section, by name."""
        entries = self.data.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict):
                yield name, entry

    def named(self, section: str, name: Any) -> Block | None:
        entries = self.data.get(section)
        entry = entries.get(name) if isinstance(entries, dict) and isinstance(name, str) else None
        return entry if isinstance(entry, dict) else None

    def members(self, section: str, name: str) -> list[str]:
        """Return the members of the grid that `name` belongs to, or the name alone if there is no grid."""
        grids = self.groups.get(section, {}).values()
        return next((members for members in grids if name in members), [name])

    def chain(self, section: str, name: str, key: str, otherwise: Any = None) -> list[str]:
        """Follow `key` from block to block; return the names, `name` first.

        In a block without the key, `otherwise` stands for its value. The chain ends where there is neither,
        or with the first name that occurs a second time.
        """
        names, seen = [name], set[str]()
        while names[-1] not in seen:
            seen.add(names[-1])
            then = (self.named(section, names[-1]) or {}).get(key, otherwise)
            if not isinstance(then, str):
                break
            names.append(then)
        return names

    # ------------------------------------------------------------ mistakes

    def unknown_key(self, path: KeyPath, entry: Block, key: str, section: str) -> Iterator[Mistake]:
        """Yield a mistake if `entry[key]` names nothing in the section."""
        yield from self.unknown_name((*path, key), entry.get(key), section)

    def unknown_name(self, path: KeyPath, value: Any, section: str) -> Iterator[Mistake]:
        """Yield a mistake at `path` if `value` names nothing in the section."""
        names = self.data.get(section)
        if not isinstance(value, str) or not isinstance(names, dict) or value in names:
            return
        grids = self.groups.get(section, {})
        if members := grids.get(value):
            yield Mistake(path, f"{shown(value)}, a grid", one_of(members, what="one of its members"))
        else:
            # as in the file: a grid by its own name, not by its members
            grid_of = {member: grid for grid, listed in grids.items() for member in listed}
            written: dict[str, None] = dict.fromkeys(grid_of.get(str(name), str(name)) for name in names)
            yield Mistake(path, shown(value), one_of(written, value, NOUNS[section]))

    def unknown_names(self, path: KeyPath, values: Any, section: str) -> Iterator[Mistake]:
        """Check a list of names: each known, each once, at least one."""
        if not isinstance(values, list):
            return
        yield from repeated(values, path)
        for index, value in enumerate(values):
            yield from self.unknown_name((*path, index), value, section)
        if not values:
            allowed = f"names ({NOUNS[section]} each), or no list for all of them"
            yield Mistake(path, "an empty list", allowed)


def kind_of(block: Any) -> str:
    """Return the `kind` of a block, or "" if the block is malformed."""
    kind = block.get("kind") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def parsed(model: type[T] | Any, value: Any) -> T | None:
    """Parse `value` as `model`, a type or a family of methods; return None if it is malformed."""
    try:
        result: T = _adapter(model).validate_python(value)
        return result
    except ValidationError:
        return None


def target_language(study: RawStudy) -> str:
    """Return the code of the target language, or "" if the study does not state it."""
    languages = study.data.get("languages")
    code = languages.get("target") if isinstance(languages, dict) else ""
    return code if isinstance(code, str) else ""


def repeated(values: Any, path: KeyPath) -> Iterator[Mistake]:
    """Yield a mistake for each value of a list that repeats an earlier one.

    Blocks and lists are skipped: such values are malformed here, which the validation reports.
    """
    seen = set()
    for index, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str | int | float | None):
            typed = (type(value), value)  # True is not 1
            if typed in seen:
                yield Mistake((*path, index), f"{shown(value)} twice", "each once")
            seen.add(typed)
