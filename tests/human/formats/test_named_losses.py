"""Out into each format and in again: every field of a campaign comes back as it was, or the part of the table
of losses that is there for it says how much of it does not."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from drawn import START, contents
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from whole_campaign import MEDIA, PICTURE

from creamtea.human.formats.base import APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT, ImportFacts
from creamtea.human.formats.exchange import find_format
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.pearmut_media import TAGS
from creamtea.human.formats.record import (
    WITH_CONTROLS,
    AnswerContent,
    Content,
    ItemContent,
    RaterContent,
    ScoreContent,
    counted_scores,
)

pytestmark = pytest.mark.slow
_folders = itertools.count(1)
FILES = {APPRAISE: "scores.csv", MQM: "mqm.tsv"}
# what takes whole ratings or items away, with all that is theirs
RATINGS = (
    "repeats and bad references",
    "second opinions",
    "single ratings",
    "earlier revisions",
    "equal outputs",
    "ratings of excluded",
    "skipped items",
    "items that nobody rated",
    "practice items",
)
# field → the beginnings of the parts that say of its loss; whoever adds a field says here what tells of it
TOLD: dict[type, dict[str, tuple[str, ...]]] = {
    Content: {
        "name": (),
        "study": ("other settings",),
        "test_set": ("name of the test set",),
        "protocol": ("protocol",),
        "systems": ("items that nobody rated", "white space and slashes", "order of systems"),
        "source_language": ("languages",),
        "target_language": ("languages",),
        "ratings_per_item": ("seed",),
        "seed": ("seed",),
        "instructions": ("instructions",),
        "settings": (),  # one by one: SETTINGS
        "state": (),  # an import is closed
        "registered": ("registered plan",),
        "created_at": ("moments",),
        "launched_at": ("moments",),
        "closed_at": ("moments",),
        "raters": (),  # the fields of RaterContent, and so on
        "items": (),
        "answers": (),
        "whole": (),  # what an export or an import adds
        "files": (),
    },
    RaterContent: {
        "pseudonym": ("raters without", "white space and slashes"),
        "created_at": ("moments", "raters without"),
        "consented_at": ("consents", "raters without"),
        "excluded_at": ("ratings of excluded", "raters without"),
        "forgotten_at": ("consents", "raters without"),
    },
    ItemContent: {
        "position": ("numbers of items",),
        "page": ("pages",),
        "kind": ("items drawn at random",),
        "segment": ("numbers of segments",),
        "document": ("white space and slashes", "numbers of segments and names of documents"),
        "source": ("sources",),
        "context": ("contexts",),
        "references": ("references",),  # of Pearmut, those after the first
        "media": ("files",),
        "systems": ("white space and slashes",),
        "outputs": ("outputs",),
        "weight": ("weights",),
        "chance": ("chances",),
        "drawn": ("chances",),
        "output_chances": ("chances",),
        "output_drawn": ("chances",),
        "block": ("systems that were drawn",),
        "original": ("numbers of items",),
        "degraded": (),
        "guidance": ("what practice and checks expect",),
        "proposals": ("errors that were marked beforehand",),
    },
    AnswerContent: {
        "item": ("numbers of items",),
        "rater": ("white space and slashes",),
        "order": ("orders",),
        "assigned_at": ("timestamps of items",),
        "submitted_at": ("timestamps of ratings",),
        "skipped_at": (),
        "skip_reason": (),
        "comment": ("comments",),
        "active_ms": ("times",),
        "warned": ("wrong answers",),
        "scores": (),
    },
    ScoreContent: {
        "system": ("white space and slashes",),
        "revision": (),
        "step": ("protocol (", "costs"),
        "at": ("timestamps of ratings",),
        "payload": ("protocol (", "positions", "categories", "costs", "proposals that"),
        "document_step": ("scores of whole documents",),
    },
}
# by their own fields, closed, or not of the campaign
NOT_COMPARED = ("settings", "raters", "items", "answers", "scores", "state", "whole", "files")
SETTINGS = {
    "baseline": ("baseline",),
    "delta": ("baseline",),
    "wmt": ("rule of WMT",),
    "taxonomy": ("taxonomy",),
    "domains": ("domains", "name of the test set beside domains"),
    "first_segment": ("numbers of segments that begin",),
    "references": ("which systems",),
}
USUAL = {"wmt": "usual", "first_segment": 1, "references": [], "domains": {}}  # where nothing is set


@pytest.mark.parametrize("part", TOLD)
def test_every_field_is_there(part: type) -> None:
    assert [field.name for field in dataclasses.fields(part)] == list(TOLD[part])


def allowed(name: str) -> bool:
    """What every format can hold; `test_other_formats` and `test_losses` have names that some refuse."""
    return "#" not in name and not name.isdigit() and not set(name) & set('"<&') and "tutorial" not in name


@st.composite
def campaigns(draw: st.DrawFn, protocol: str) -> Content:
    """Campaigns of `contents` with what those lack."""
    before = draw(contents(protocol, allowed=allowed, proposals=True))

    def maybe(value: Any, usual: Any) -> Any:
        return value if draw(st.integers(0, 3)) == 0 else usual

    items = tuple(
        dataclasses.replace(
            item,
            page=maybe(item.position, None),
            references=maybe(("das da",), ()),
            media=maybe((MEDIA,), ()),
            chance=maybe(0.5, None),
        )
        for item in before.items
    )
    answers = tuple(
        dataclasses.replace(
            answer,
            warned=maybe(2, 0),
            skip_reason=maybe("no idea", "") if answer.skipped_at else "",
            scores=tuple(
                dataclasses.replace(
                    score, document_step=maybe(4, None), payload=_linked(score, items, answer)
                )
                for score in answer.scores
            ),
        )
        for answer in before.answers
    )
    raters = tuple(
        dataclasses.replace(person, consented_at=maybe(START, None), forgotten_at=maybe(START, None))
        for person in before.raters
    )
    given: dict[str, Any] = {
        "wmt": draw(st.sampled_from([None, "usual", "crowd", "da-sqm", "esa"])),
        "baseline": maybe(before.systems[-1], None),
        "delta": maybe(3.0, None),
        "first_segment": maybe(0, None),
        "references": maybe([before.systems[0]], None),
        "domains": maybe({item.document: "news" for item in items if item.segment >= 0}, None),
        "consent": maybe("yes", None),
    }
    return dataclasses.replace(
        before,
        items=items,
        answers=answers,
        raters=raters,
        settings={name: value for name, value in given.items() if value is not None},
        instructions=maybe("# Rate", ""),
        registered=maybe({"digest": "x"}, None),
        seed=maybe(7, 0),
        ratings_per_item=maybe(2, 1),
        launched_at=maybe(START + timedelta(days=1), START),
    )


def _linked(
    score: ScoreContent, items: tuple[ItemContent, ...], answer: AnswerContent
) -> dict[str, Any] | None:
    """The payload, with its first error made from the item's proposal where there is one."""
    proposals = items[answer.item].proposals or {}
    if not score.payload or not score.payload.get("spans") or score.system not in proposals:
        return score.payload
    first, *others = score.payload["spans"]
    return {**score.payload, "spans": [{**first, "proposed": 0}, *others]}


def multiset(values: Iterable[Any]) -> Counter[str]:
    return Counter(map(repr, values))


def sorted_keys(value: Any) -> Any:
    """Without an order of keys; a member of an enumeration is its text."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return sorted((key, sorted_keys(inner)) for key, inner in value.items())
    return [sorted_keys(inner) for inner in value] if isinstance(value, list | tuple) else value


def values_of(content: Content) -> dict[tuple[str, str], Counter[str]]:
    """Each field's values over the ratings that count: of (class, field)."""
    found: dict[tuple[str, str], list[Any]] = {}
    rated = list(counted_scores(content, WITH_CONTROLS))
    for part, objects in {
        Content: [content],
        RaterContent: content.raters,
        ItemContent: [counted.item for counted in rated],
        AnswerContent: [counted.answer for counted in rated],
        ScoreContent: [counted.score for counted in rated],
    }.items():
        for field in TOLD[part]:
            values = [sorted_keys(getattr(each, field)) for each in objects]
            found[part.__name__, field] = values
    return {key: multiset(values) for key, values in found.items()}


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        *((kind, protocol) for kind in ("csv", "jsonl") for protocol in ("da", "esa", "cesa")),
        *((APPRAISE, protocol) for protocol in ("da", "da-sqm", "esa", "mqm")),
        (MQM, "mqm"),
        *((MT_METRICS_EVAL, protocol) for protocol in ("da", "da-sqm", "esa", "mqm")),
        *((PEARMUT, protocol) for protocol in ("da", "da-sqm", "esa", "cesa", "mqm")),
    ],
)
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=FIXTURES_ARE_SHARED)
@given(data=st.data())
def test_what_does_not_come_back_is_named(
    tmp_path: Path, kind: str, protocol: str, data: st.DataObject
) -> None:
    before = data.draw(campaigns(protocol))
    assume(any(True for _ in counted_scores(before)))
    assume(not any(text.startswith(TAGS) for item in before.items for text in (item.source, *item.outputs)))
    out = tmp_path / f"out-{next(_folders)}"
    find_format(kind).write(before, out)
    if find_format(kind).has_media:
        (out / "media").mkdir()
        (out / "media" / f"{MEDIA['digest']}.png").write_bytes(PICTURE)
    told = ImportFacts("drawn", protocol if kind == APPRAISE else None)
    after, _ = find_format(kind).read(out / FILES.get(kind, ""), told, START)
    named = [part.what for part in not_held(before, kind)]
    lost = [name for name in named if name.startswith(RATINGS)]
    earlier, later = values_of(before), values_of(after)
    unnamed = []
    for part, fields in TOLD.items():
        for field, words in fields.items():
            key = part.__name__, field
            if field not in NOT_COMPARED and earlier[key] != later[key]:
                explained = any(name.startswith(words) for name in named) if words else False
                if not explained and not (lost and part is not Content):
                    unnamed.append(key)
    for name in {**before.settings, **SETTINGS}:
        words = SETTINGS.get(name, ("other settings",))
        usual = USUAL.get(name)
        value, found = (content.settings.get(name, usual) for content in (before, after))
        if found != value and not any(what.startswith(words) for what in named):
            unnamed.append(("settings", name))
    assert unnamed == []
