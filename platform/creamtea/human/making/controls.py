"""Controls: items that show whether a rater reads. Statistics of systems leave them out.

A *bad reference* is an item with one output spoilt: L consecutive tokens are replaced by L tokens of the
reference of another segment, where n tokens give L = 1 → 1, 2–5 → 2, 6–8 → 3, 9–15 → 4, 16–20 → 5, more →
⌊n/4⌋; in Chinese and Japanese characters are tokens, and L is doubled (the WMT's recipe), and likewise in
other languages without blanks, whose characters keep their marks. A *repeat* is an item once more, as it
was. Both lie half a batch behind their original, so that the same rater meets both in the ordinary flow.

Items that are shown together come again together. Of such a page with bad references a third of the
segments, drawn at random, are spoilt (at least one), and the others are repeats: so it tells of both, and a
rater does not see that it is a control.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from creamtea.errors import InputError
from creamtea.human.making.settings import CampaignSettings, number_of
from creamtea.human.record import ItemContent
from creamtea.store.tables import Item, ItemKind
from creamtea.wording import counted, key_name
from creamtea.words import characters, is_unspaced

SEGMENTS_PER_SPOILT_ONE = 3
SPOILT_LENGTHS = ((0, 0), (1, 1), (5, 2), (8, 3), (15, 4), (20, 5))  # up to so many tokens, so many
Page = Sequence[ItemContent]  # items that are shown together, in their order; most often one


def spoilt_length(tokens: int, *, characters: bool = False) -> int:
    """Return how many of `tokens` consecutive tokens a bad reference replaces; never more than there are."""
    length = next((length for most, length in SPOILT_LENGTHS if tokens <= most), tokens // 4)
    return min(tokens, length * 2) if characters else length


def spoil(text: str, references: Sequence[str], language: str, draw: random.Random) -> str | None:
    """Return `text` with L consecutive tokens replaced by L of one of the references, or None.

    None: the text is empty, or no reference has L consecutive tokens that change it.
    """
    unspaced = is_unspaced(language)
    between = "" if unspaced else " "
    cut = characters if unspaced else str.split
    tokens = cut(text)
    length = spoilt_length(len(tokens), characters=unspaced)
    if length == 0:
        return None
    for reference in draw.sample(references, len(references)):
        donor = cut(reference)
        if len(donor) < length:
            continue
        at = draw.randrange(len(tokens) - length + 1)
        start = draw.randrange(len(donor) - length + 1)
        piece = donor[start : start + length]
        if piece != tokens[at : at + length]:
            return between.join([*tokens[:at], *piece, *tokens[at + length :]])
    return None


def with_controls(
    pages: Sequence[Page],
    references: dict[int, str],
    settings: CampaignSettings,
    language: str,
    seed: int,
    first: int = 0,
) -> list[list[ItemContent]]:
    """Return the pages in their order with the controls between them.

    `references` are the test set's by segment. A control has `original`, the place of its
    original item, where the items returned start at place `first`. A page has one control at most, and
    amounts are of pages. In an adaptive design, which text is spoilt follows from what the page shows: items
    hold the spoilt texts of all systems until then (`spoil_shown`). InputError where there are not enough
    pages, or not enough that can be spoilt.
    """
    items = sum(map(len, pages))
    half = max(1, min(settings.batch, items) // 2 * len(pages) // items)
    hosts = list(range(len(pages) - half))  # what has half a batch behind it
    bad, repeats = (number_of(amount, len(pages)) for amount in (settings.bad_references, settings.repeats))
    draw = random.Random(f"{seed}/controls")
    behind: dict[int, list[ItemContent]] = {}  # original's place among the pages → its control
    for at in _spread(hosts, draw):
        if bad == 0:
            break
        made = _spoilt_page(pages[at], references, language, draw, later=settings.design == "adaptive")
        if made is not None:
            behind[at] = made
            bad -= 1
    free = [at for at in hosts if at not in behind]
    what = "item" if items == len(pages) else "page"
    if bad > 0:
        raise _too_few("bad references", bad, len(hosts), any(references.values()), what)
    if repeats > len(free):
        raise _too_few("repeats", repeats - len(free), len(hosts), True, what)
    for at in _spread(free, draw)[:repeats]:
        behind[at] = [replace(item, kind=ItemKind.REPEAT, weight=0.0) for item in pages[at]]
    return _placed(pages, behind, half, first)


def _too_few(what: str, missing: int, hosts: int, has_references: bool, page: str) -> InputError:
    field = f"controls.{what.replace(' ', '_')}"
    if not has_references:
        none = "bad references need references, and the test set has none"
        return InputError(f"{none}: set {key_name(field)} to 0", about=field)
    have = f"{counted(hosts, page)} {'has' if hosts == 1 else 'have'}"
    return InputError(
        f"{missing} {what} too many: only {have} a place for a control half a batch later, one each, and an "
        f"empty output cannot be spoilt; ask for fewer with {key_name(field)}",
        about=field,
    )


def _spread(places: list[int], draw: random.Random) -> list[int]:
    """Return the places in an order whose every beginning is spread evenly.

    The order is a van der Corput sequence from a random start.
    """
    if not places:
        return []
    start = draw.random()
    order = dict.fromkeys(
        # the binary digits of a number, mirrored behind the point: 0, 1/2, 1/4, 3/4, 1/8, …
        places[int((int(f"{number:b}"[::-1], 2) / 2 ** number.bit_length() + start) % 1.0 * len(places))]
        for number in range(4 * len(places))
    )
    return [*order, *(place for place in places if place not in order)]


def _spoilt_page(
    page: Page, references: dict[int, str], language: str, draw: random.Random, *, later: bool
) -> list[ItemContent] | None:
    """Return the page with a third of its items spoilt, at least one, and the others repeated.

    None if no item can be spoilt.
    """
    order = range(len(page)) if len(page) == 1 else draw.sample(range(len(page)), len(page))
    wanted = max(1, len(page) // SEGMENTS_PER_SPOILT_ONE)
    spoilt: dict[int, ItemContent] = {}
    for at in order:
        if len(spoilt) < wanted and (
            made := _bad_reference(page[at], references, language, draw, later=later)
        ):
            spoilt[at] = made
    if not spoilt:
        return None
    repeats = (replace(item, kind=ItemKind.REPEAT, weight=0.0) for item in page)
    return [spoilt.get(at, repeat) for at, repeat in enumerate(repeats)]


def _bad_reference(
    item: ItemContent, references: dict[int, str], language: str, draw: random.Random, *, later: bool
) -> ItemContent | None:
    """Return the item with one of its distinct texts spoilt into a text that it lacks; None if none can be.

    Systems with this same text share the spoilt one, as they shared the text: as many texts are shown as in
    the original. `degraded` is the first of these systems. `later`: the item's guidance keeps every text that
    can be spoilt, {"spoilt": {text: spoilt text}}.
    """
    own = references.get(item.segment)
    others = [text for text in references.values() if text not in ("", own)]
    distinct = sorted(set(item.outputs))
    bad = replace(item, kind=ItemKind.BAD_REFERENCE, weight=0.0)
    texts: dict[str, str] = {}
    for text in draw.sample(distinct, len(distinct)):
        spoilt = spoil(text, others, language, draw)
        if spoilt is None or spoilt in distinct:
            continue
        if not later:
            outputs = tuple(spoilt if output == text else output for output in item.outputs)
            return replace(bad, degraded=item.systems[item.outputs.index(text)], outputs=outputs)
        texts[text] = spoilt
    return replace(bad, guidance={"spoilt": texts}) if texts else None


def spoil_shown(item: Item, draw: random.Random) -> bool:
    """Spoil one of the texts that a bad reference of an adaptive design shows; False where none can be."""
    texts = item.guidance["spoilt"] if item.guidance else {}
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    shown = sorted({outputs[system] for system in item.shown} & texts.keys())
    if not shown:
        return False
    chosen = draw.choice(shown)
    item.degraded = next(system for system in item.shown if outputs[system] == chosen)
    item.outputs = [texts[chosen] if output == chosen else output for output in item.outputs]
    return True


def _placed(
    pages: Sequence[Page], behind: dict[int, list[ItemContent]], half: int, first: int
) -> list[list[ItemContent]]:
    """Put pages and controls in one list; a control stands right before the page half a batch further."""
    due = {at + half: at for at in behind}
    placed: list[list[ItemContent]] = []
    place_of: dict[int, int] = {}  # of a page: its first item's
    place = first
    for at in range(len(pages) + 1):
        if at in due:
            start = place_of[due[at]]
            placed.append([replace(item, original=start + k) for k, item in enumerate(behind[due[at]])])
            place += len(placed[-1])
        if at < len(pages):
            place_of[at] = place
            placed.append([*pages[at]])
            place += len(placed[-1])
    return placed
