"""Controls: items that show whether a rater reads. Statistics of systems leave them out.

A *bad reference* is an item with one output spoilt: L consecutive tokens are replaced by L tokens from the
reference of another segment. L follows WMT's recipe from the number of tokens n: 1 → 1, 2–5 → 2, 6–8 → 3,
9–15 → 4, 16–20 → 5, more → ⌊n/4⌋. In Chinese and Japanese, characters are tokens, and L is doubled; so it is
in other languages without blanks, whose characters keep their marks. A *repeat* is the same item again. Both
come half a batch after their original, so that the same rater meets both in the ordinary flow. An
output with a file cannot be spoilt.

Items of one page come again together. On a page of bad references a random third of the segments is spoilt
(at least one), and the others are repeats: the page checks both, and a rater does not recognise the control.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from creamtea.errors import InputError
from creamtea.human.making.settings import CampaignSettings, number_of
from creamtea.human.record import ItemContent, distinct_outputs
from creamtea.store.tables import Item, ItemKind
from creamtea.wording import counted, key_name
from creamtea.words import characters, is_unspaced

SEGMENTS_PER_SPOILT_ONE = 3
SPOILT_LENGTHS = ((0, 0), (1, 1), (5, 2), (8, 3), (15, 4), (20, 5))  # maximum of tokens, tokens replaced
Page = Sequence[ItemContent]  # items that are shown together, in their order; usually one


def spoilt_length(tokens: int, *, characters: bool = False) -> int:
    """Return the number of consecutive tokens that a bad reference replaces in a text of `tokens`."""
    length = next((length for most, length in SPOILT_LENGTHS if tokens <= most), tokens // 4)
    return min(tokens, length * 2) if characters else length


def spoil(text: str, references: Sequence[str], language: str, draw: random.Random) -> str | None:
    """Return `text` with L consecutive tokens replaced by L consecutive tokens from a reference.

    None if the text is empty, or if the drawn tokens of no reference change it.
    """
    unspaced = is_unspaced(language)
    between = "" if unspaced else " "
    tokenize = characters if unspaced else str.split
    tokens = tokenize(text)
    length = spoilt_length(len(tokens), characters=unspaced)
    if length == 0:
        return None
    for reference in draw.sample(references, len(references)):
        donor = tokenize(reference)
        if len(donor) < length:
            continue
        target = draw.randrange(len(tokens) - length + 1)
        start = draw.randrange(len(donor) - length + 1)
        piece = donor[start : start + length]
        if piece != tokens[target : target + length]:
            return between.join([*tokens[:target], *piece, *tokens[target + length :]])
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

    `references`: the test set's, by segment. `first`: the position of the first item returned; a control's
    `original` is the position of its original. A page has at most one control, and amounts count pages. In an
    adaptive design the page's systems decide later which text is spoilt: until then, items hold the spoilt
    texts of all systems (`spoil_shown`). InputError if there are too few pages, or too few that can be
    spoilt.
    """
    items = sum(map(len, pages))
    half = max(1, min(settings.batch, items) // 2 * len(pages) // items)
    hosts = list(range(len(pages) - half))  # pages that half a batch follows
    bad, repeats = (number_of(amount, len(pages)) for amount in (settings.bad_references, settings.repeats))
    draw = random.Random(f"{seed}/controls")
    controls: dict[int, list[ItemContent]] = {}  # by the original's number among the pages
    for number in _spread(hosts, draw):
        if bad == 0:
            break
        control = _spoilt_page(pages[number], references, language, draw, later=settings.design == "adaptive")
        if control is not None:
            controls[number] = control
            bad -= 1
    free = [number for number in hosts if number not in controls]
    what = "item" if items == len(pages) else "page"
    if bad > 0:
        raise _too_few("bad references", bad, len(hosts), any(references.values()), what)
    if repeats > len(free):
        raise _too_few("repeats", repeats - len(free), len(hosts), True, what)
    for number in _spread(free, draw)[:repeats]:
        controls[number] = [replace(item, kind=ItemKind.REPEAT, weight=0.0) for item in pages[number]]
    return _placed(pages, controls, half, first)


def _too_few(what: str, missing: int, hosts: int, has_references: bool, page: str) -> InputError:
    field = f"controls.{what.replace(' ', '_')}"
    if not has_references:
        none = "bad references need references, and the test set has none"
        return InputError(f"{none}: set {key_name(field)} to 0", about=field)
    have = f"{counted(hosts, page)} {'has' if hosts == 1 else 'have'}"
    return InputError(
        f"{missing} {what} too many: only {have} a place for a control half a batch later, one each, and an "
        f"output that is empty or has a file cannot be spoilt; ask for fewer with {key_name(field)}",
        about=field,
    )


def _spread(places: list[int], draw: random.Random) -> list[int]:
    """Return the places in an order of which every prefix is spread evenly over them.

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
    for number in order:
        if len(spoilt) < wanted and (
            bad := _bad_reference(page[number], references, language, draw, later=later)
        ):
            spoilt[number] = bad
    if not spoilt:
        return None
    repeats = (replace(item, kind=ItemKind.REPEAT, weight=0.0) for item in page)
    return [spoilt.get(number, repeat) for number, repeat in enumerate(repeats)]


def _bad_reference(
    item: ItemContent, references: dict[int, str], language: str, draw: random.Random, *, later: bool
) -> ItemContent | None:
    """Return the item with one of its distinct texts spoilt into a new text; None if none can be spoilt.

    Systems that shared the text share the spoilt text, so the item shows as many texts as its original.
    `degraded` is the first of these systems. `later`: the item's guidance keeps every text that can be
    spoilt, {"spoilt": {text: spoilt text}}.
    """
    own = references.get(item.segment)
    others = [text for text in references.values() if text not in ("", own)]
    outputs = distinct_outputs(item)  # an output with a file is never equal to a text in `item.outputs`
    distinct = sorted({*outputs} & {*item.outputs})
    bad = replace(item, kind=ItemKind.BAD_REFERENCE, weight=0.0)
    texts: dict[str, str] = {}
    for text in draw.sample(distinct, len(distinct)):
        spoilt = spoil(text, others, language, draw)
        if spoilt is None or spoilt in distinct:
            continue
        if not later:
            changed = zip(item.outputs, outputs, strict=True)
            return replace(
                bad,
                degraded=item.systems[outputs.index(text)],
                outputs=tuple(spoilt if known == text else output for output, known in changed),
            )
        texts[text] = spoilt
    return replace(bad, guidance={"spoilt": texts}) if texts else None


def spoil_shown(item: Item, draw: random.Random) -> bool:
    """Spoil a text that a bad reference of an adaptive design shows; return False if none can be spoilt."""
    texts = item.guidance["spoilt"] if item.guidance else {}
    outputs = dict(zip(item.systems, distinct_outputs(item), strict=True))
    shown = sorted({outputs[system] for system in item.shown} & texts.keys())
    if not shown:
        return False
    chosen = draw.choice(shown)
    item.degraded = next(system for system in item.shown if outputs[system] == chosen)
    changed = zip(item.outputs, outputs.values(), strict=True)
    item.outputs = [texts[chosen] if known == chosen else output for output, known in changed]
    return True


def _placed(
    pages: Sequence[Page], controls: dict[int, list[ItemContent]], half: int, first: int
) -> list[list[ItemContent]]:
    """Put pages and controls in one list; a control stands right before the page half a batch later."""
    due = {number + half: number for number in controls}
    placed: list[list[ItemContent]] = []
    positions: dict[int, int] = {}  # of each page's first item
    position = first
    for number in range(len(pages) + 1):
        if number in due:
            control, start = controls[due[number]], positions[due[number]]
            placed.append([replace(item, original=start + k) for k, item in enumerate(control)])
            position += len(control)
        if number < len(pages):
            positions[number] = position
            placed.append([*pages[number]])
            position += len(placed[-1])
    return placed
