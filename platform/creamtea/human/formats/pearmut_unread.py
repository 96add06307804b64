"""What Pearmut's files say that creamtea has no place for, by name: no key is left out without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from creamtea.human.formats.losses import NotKept
from creamtea.human.formats.pearmut import Action, Campaign, PearmutItem, choices
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import MarksErrors
from creamtea.store.item_kinds import ItemKind

# what the files' layout says; `validations`: whether checks were passed, which follows from the answers
LAYOUT = {"campaign_id", "token", "assignment", "validations"}
MAX_NAME = 60  # characters of a key, in a message


def unread_settings(campaign: Campaign, protocol: Protocol) -> tuple[NotKept, ...]:
    """Name the settings that nothing here reads: instructions, sliders and the like, in one line. Severities
    and categories are only among them where they are not the protocol's usual ones."""
    usual = choices(protocol) if isinstance(protocol, MarksErrors) else {}
    own = campaign.info.model_extra or {}
    found = [
        name.removeprefix("info.")
        for name in unread_keys(campaign)
        if usual.get(name.removeprefix("info."), own) != own.get(name.removeprefix("info."))
    ]
    return (NotKept(len(found), f"settings of Pearmut: {', '.join(found)}"),) if found else ()


def unread_of_item(item: PearmutItem, kind: ItemKind) -> Counter[str]:
    """Count `instructions`, which are HTML above an item, keys that are only for logs, and what is marked or
    expected where no output is."""
    left: Counter[str] = Counter()
    for name in unread_keys(item):
        left["instructions of items" if name == "instructions" else f"values of {name!r} in items"] += 1
    marked = item.error_spans if isinstance(item.error_spans, dict) else {}
    shown = () if kind.is_written else item.tgt
    left["pre-filled errors"] += sum(len(spans) for name, spans in marked.items() if name not in shown)
    if item.creamtea is not None and item.creamtea.systems:
        left["outputs that an item of an export does not show"] += len(
            set(item.tgt) - set(item.creamtea.systems)
        )
    left["checks of outputs that are not there"] += len(set(item.rules) - set(item.tgt))
    rules = item.validation.values() if isinstance(item.validation, dict) else [item.validation]
    for name, values in (("error_spans", [item.error_spans]), ("validation", rules)):
        what = f"lists of {name!r}, as version 0 has them"
        left[what] += sum(isinstance(value, list) and bool(value) for value in values)
    return left


def count_unread(read: BaseModel, where: str, left: Counter[str]) -> None:
    """Count the keys that nothing here reads."""
    for name in unread_keys(read):
        left[f"values of {name!r} in {where}"] += 1


def unread_keys(read: Any) -> Iterator[str]:
    """Name each such key with the keys that lead to it, without the names of systems. Actions, which are
    counted as such, have many."""
    empty: Sequence[Any] = (None, "", [], {})
    if isinstance(read, BaseModel) and not isinstance(read, Action):
        for name in type(read).model_fields:
            yield from (f"{name}.{inner}"[:MAX_NAME] for inner in unread_keys(getattr(read, name)))
        for name, value in (read.model_extra or {}).items():
            if name not in LAYOUT and value not in empty:
                yield name[:MAX_NAME]
    elif isinstance(read, list | dict):
        for value in read if isinstance(read, list) else read.values():
            yield from unread_keys(value)
