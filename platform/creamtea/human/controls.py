"""Controls: items that show whether a rater reads. Statistics of systems leave them out.

A *bad reference* is an item with one output spoilt: L consecutive tokens are replaced by L tokens of the
reference of another segment, where n tokens give L = 1 → 1, 2–5 → 2, 6–8 → 3, 9–15 → 4, 16–20 → 5,
more → ⌊n/4⌋; in Chinese and Japanese characters are tokens, and L is doubled (the WMT's recipe). A
*repeat* is an item once more, as it was. Both lie half a batch behind their original, so that the same
rater meets both in the ordinary flow.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from creamtea.errors import InputError
from creamtea.human.settings import CampaignSettings, counted
from creamtea.store.item_kinds import ItemKind

CHARACTER_LANGUAGES = ("zh", "ja")
Fields = dict[str, Any]


def spoilt_length(tokens: int, *, characters: bool = False) -> int:
    """How many of `tokens` consecutive tokens a bad reference replaces; never more than there are."""
    if tokens <= 1:
        length = tokens
    elif tokens <= 5:
        length = 2
    elif tokens <= 8:
        length = 3
    elif tokens <= 15:
        length = 4
    elif tokens <= 20:
        length = 5
    else:
        length = tokens // 4
    return min(tokens, length * 2) if characters else length


def spoil(text: str, references: Sequence[str], language: str, draw: random.Random) -> str | None:
    """`text` with L consecutive tokens replaced by L of one of the references, or None.

    None: the text is empty, or no reference has L consecutive tokens that change it.
    """
    characters = language in CHARACTER_LANGUAGES
    between = "" if characters else " "
    tokens = _tokens(text, characters)
    length = spoilt_length(len(tokens), characters=characters)
    if length == 0:
        return None
    for reference in draw.sample(references, len(references)):
        donor = _tokens(reference, characters)
        if len(donor) < length:
            continue
        at = draw.randrange(len(tokens) - length + 1)
        start = draw.randrange(len(donor) - length + 1)
        piece = donor[start : start + length]
        if piece != tokens[at : at + length]:
            return between.join([*tokens[:at], *piece, *tokens[at + length :]])
    return None


def _tokens(text: str, characters: bool) -> list[str]:
    return list(text) if characters else text.split()


def with_controls(
    items: Sequence[Fields],
    references: dict[int, str],
    settings: CampaignSettings,
    language: str,
    seed: int,
    first: int = 0,
) -> list[Fields]:
    """The items in their order with the controls between them.

    `references` are the test set's by segment. A control's fields have `original`, the place of its
    original, where the list returned starts at place `first`. An item has one control at most. InputError
    where there are not enough items, or not enough that can be spoilt.
    """
    half = min(settings.batch, len(items)) // 2
    hosts = list(range(len(items) - half))  # what has half a batch behind it
    bad, repeats = (counted(amount, len(items)) for amount in (settings.bad_references, settings.repeats))
    draw = random.Random(f"{seed}/controls")
    behind: dict[int, Fields] = {}  # original's place among the items → its control
    for at in _spread(hosts, draw):
        if bad == 0:
            break
        made = _bad_reference(items[at], references, language, draw)
        if made is not None:
            behind[at] = made
            bad -= 1
    free = [at for at in hosts if at not in behind]
    if bad > 0:
        raise InputError(_too_few("bad references", bad, len(hosts), any(references.values())))
    if repeats > len(free):
        raise InputError(_too_few("repeats", repeats - len(free), len(hosts), True))
    for at in _spread(free, draw)[:repeats]:
        behind[at] = {**items[at], "kind": ItemKind.REPEAT, "weight": 0.0}
    return _placed(items, behind, half, first)


def _too_few(what: str, missing: int, hosts: int, has_references: bool) -> str:
    option = "--" + what.replace(" ", "-")
    if not has_references:
        return f"bad references need references, and the test set has none: {option} 0"
    return (
        f"{missing} {what} too many: {hosts} items lie half a batch before another place, an item has one "
        f"control at most, and an empty output cannot be spoilt; ask for fewer with {option}"
    )


def _spread(places: list[int], draw: random.Random) -> list[int]:
    """The places in an order whose every beginning is spread evenly: a van der Corput sequence from a
    random start."""
    if not places:
        return []
    start = draw.random()
    order = dict.fromkeys(
        places[int((_reversed_bits(number) + start) % 1.0 * len(places))] for number in range(4 * len(places))
    )
    return [*order, *(place for place in places if place not in order)]


def _reversed_bits(number: int) -> float:
    """The binary digits of a number, mirrored behind the point: 0, 1/2, 1/4, 3/4, 1/8, …"""
    value, part = 0.0, 0.5
    while number:
        value += part * (number & 1)
        number >>= 1
        part /= 2
    return value


def _bad_reference(
    item: Fields, references: dict[int, str], language: str, draw: random.Random
) -> Fields | None:
    """The item with one of its distinct texts spoilt into one that it lacks, or None where none can be.

    Systems with this same text share the spoilt one, as they shared the text: as many texts are shown as
    in the original. `degraded` is the first of them.
    """
    own = references.get(item["segment_index"])
    others = [text for text in references.values() if text not in ("", own)]
    distinct = sorted(set(item["outputs"]))
    for text in draw.sample(distinct, len(distinct)):
        spoilt = spoil(text, others, language, draw)
        if spoilt is None or spoilt in distinct:
            continue
        outputs = [spoilt if output == text else output for output in item["outputs"]]
        degraded = item["systems"][item["outputs"].index(text)]
        return {
            **item,
            "kind": ItemKind.BAD_REFERENCE,
            "weight": 0.0,
            "degraded": degraded,
            "outputs": outputs,
        }
    return None


def _placed(items: Sequence[Fields], behind: dict[int, Fields], half: int, first: int) -> list[Fields]:
    """Items and controls in one list; a control stands right before the item half a batch further."""
    due = {at + half: at for at in behind}
    placed: list[Fields] = []
    place_of: dict[int, int] = {}
    for at in range(len(items) + 1):
        if at in due:
            original = due[at]
            placed.append({**behind[original], "original": place_of[original]})
        if at < len(items):
            place_of[at] = first + len(placed)
            placed.append(dict(items[at]))
    return placed
