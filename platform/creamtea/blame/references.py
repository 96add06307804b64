"""The references of a campaign's segments: the test set's, further ones, and those that raters saw."""

from __future__ import annotations

import json
from collections import defaultdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import Item, Segment, StepFile

FILE = "segments.jsonl"  # of a step `test_set`; only the first references are rows


def references_of(
    session: Session, store: ArtefactStore, test_set: str, campaign: int
) -> dict[int, list[str]]:
    """By segment, each text once, empty ones left out. `test_set`: the key of its step."""
    found: dict[int, list[str]] = defaultdict(list)
    for index, text in session.execute(
        select(Segment.index, Segment.reference).where(Segment.step_key == test_set)
    ):
        found[index].append(text)
    for index, texts in _further(session, store, test_set).items():
        found[index] += texts
    for index, texts in session.execute(
        select(Item.segment_index, Item.references).where(Item.campaign_id == campaign)
    ):
        found[index] += texts
    return {index: [text for text in dict.fromkeys(texts) if text] for index, texts in found.items()}


def _further(session: Session, store: ArtefactStore, test_set: str) -> dict[int, list[str]]:
    file = session.get(StepFile, (test_set, FILE))
    if file is None:
        return {}
    with store.open(file.digest) as lines:
        rows = [json.loads(line) for line in lines if b"more_references" in line]
    return {row["index"]: row["more_references"] for row in rows}
