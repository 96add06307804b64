"""What Pearmut's files say that creamtea has no place for, by name: no key is left out without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from creamtea.human.exchange.losses import NotKept
from creamtea.human.exchange.pearmut import Campaign, Info, PearmutItem, choices
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import MarksErrors

# what the files' layout says
LAYOUT = {"campaign_id", "token", "assignment"}
MAX_NAME = 30  # characters of a key, in a message


def unread_settings(written: Mapping[str, Any], protocol: Protocol) -> tuple[NotKept, ...]:
    """Of a campaign as it is written: instructions, sliders and the like, in one line. Severities and
    categories are only among them where they are not the protocol's usual ones."""
    usual = choices(protocol) if isinstance(protocol, MarksErrors) else {}
    info = {name: value for name, value in written["info"].items() if usual.get(name) != value}
    found = [*_unread(info, Info.model_fields), *_unread(written, Campaign.model_fields)]
    return (NotKept(len(found), f"settings of Pearmut: {', '.join(found)}"),) if found else ()


def count_of_item(written: Mapping[str, Any], left: Counter[str]) -> None:
    """`instructions`, which are HTML above an item, and keys that are only for logs."""
    for name in _unread(written, PearmutItem.model_fields):
        left["instructions of items" if name == "instructions" else f"values of {name!r} in items"] += 1


def _unread(written: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    empty: Sequence[Any] = (None, "", [], {})
    return [
        name[:MAX_NAME]
        for name, value in written.items()
        if name not in known and name not in LAYOUT and value not in empty
    ]
