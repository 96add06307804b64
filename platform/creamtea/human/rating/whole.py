"""The score of a whole document: asked for once, on the page with the document's last segments.

The page may hold only its end; then the segments before it are there to read, whoever rated them. A text is
what a system says in the whole document: two systems with one text here and different ones before have a
score each.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.rating.model import ReadBefore
from creamtea.human.rating.orders import Order
from creamtea.human.rating.page import OwnPage
from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Campaign, Item, Rating


@dataclass(frozen=True)
class Whole:
    """`groups`: the systems of each text; `letters`: what each is called, "" where there is one; `before`:
    the segments on earlier pages with an output for each text."""

    groups: Order
    letters: list[str]
    before: list[ReadBefore]

    def drafted(self, page: OwnPage) -> list[int | None]:
        """The scores that were begun, one for each text."""
        steps = (page.first.draft or {}).get("document") or []
        return list(steps) if len(steps) == len(self.groups) else [None] * len(self.groups)

    def stored(self, session: Session, page: OwnPage, revision: int) -> list[int | None]:
        """The scores of a revision, one for each text."""
        rows = session.execute(
            select(Rating.system, Rating.document_step).where(
                Rating.assignment_id == page.first.id, Rating.revision == revision
            )
        )
        steps = {row[0]: row[1] for row in rows}
        return [steps.get(group[0]) for group in self.groups]


def whole_of(session: Session, campaign: Campaign, page: OwnPage) -> Whole | None:
    """What is asked for of the whole document on this page; None where nothing is."""
    lead = page.lead
    if not campaign.settings.get("document_score") or lead.page is None:
        return None
    rows = session.execute(
        select(Item.segment_index, Item.source, Item.systems, Item.outputs)
        .where(Item.campaign_id == campaign.id, Item.document == lead.document, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.segment_index, Item.position)
    ).all()
    if any(segment > page.items[-1].segment_index for segment, *_ in rows):
        return None  # a later page has the end
    sources: dict[int, str] = {}
    texts: dict[tuple[int, int], str] = {}  # segment, system
    for segment, source, systems, outputs in rows:
        if segment < lead.segment_index:
            sources[segment] = source
            texts |= {(segment, system): text for system, text in zip(systems, outputs, strict=True)}
    groups, letters = [], []
    for at, together in enumerate(shown := page.systems()):
        letter = chr(ord("A") + at) if len(shown) > 1 else ""
        parts: dict[tuple[str, ...], list[int]] = {}
        for system in together:
            said = tuple(texts.get((segment, system), "") for segment in sources)
            parts.setdefault(said, []).append(system)
        for number, text in enumerate(sorted(parts), start=1):  # an order that tells nothing of systems
            groups.append(parts[text])
            letters.append(f"{letter}{number}" if len(parts) > 1 else letter)
    before = [
        ReadBefore(source, [texts.get((segment, group[0]), "") for group in groups])
        for segment, source in sources.items()
    ]
    return Whole(groups, letters, before)
