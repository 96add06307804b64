"""What raters answered, as rows of the database or of a simulation give it, and how much they had to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.words import words
from creamtea.store.item_kinds import WRITTEN_KINDS, ItemKind
from creamtea.store.tables import Assignment, Item, Rating, shown_of
from creamtea.words import KANA_OR_HAN, UNSPACED, WORDS_PER_CHARACTER, WORDS_PER_LETTER


@dataclass(frozen=True)
class RaterAnswer:
    """One item as one rater answered it last (the revision that counts).

    `groups` are the shown outputs in the order in which they were shown, each by the positions of the systems
    with that text; `steps` has a score for each group, in steps of the protocol's scale.
    """

    rater: int
    item: int
    kind: ItemKind
    original: int | None  # of a control: the item that it was made from
    degraded: int | None  # of a bad reference: the position of the system whose text was spoilt
    groups: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]
    words: float  # to read, see `reading_words`
    active_ms: int | None
    segment: int  # of the test set

    def place_of(self, system: int | None) -> int | None:
        """Where the output of a system by its position is shown; None where the item does not show it."""
        return next((place for place, group in enumerate(self.groups) if system in group), None)

    def step_of(self, system: int) -> int | None:
        """The score of a system by its position; None where the item does not show it."""
        return next(
            (step for group, step in zip(self.groups, self.steps, strict=True) if system in group), None
        )


def reading_words(source: str, context: Sequence[str], outputs: Sequence[str]) -> float:
    """How many words a rater has to read at least: context, source, and of the outputs each word as often as
    the output that has it most often. A word that outputs share is not counted again, because whoever
    compares translations reads what they share once.
    """
    most: Counter[str] = Counter()
    for text in outputs:
        most |= Counter(words(text))
    read = [*(piece for text in (*context, source) for piece in words(text)), *most.elements()]
    return sum(map(_in_words, read))


def _in_words(piece: str) -> float:
    if not UNSPACED.match(piece):
        return 1.0
    return WORDS_PER_CHARACTER if KANA_OR_HAN.match(piece) else WORDS_PER_LETTER


def read_answers(session: Session, campaign_id: int) -> list[RaterAnswer]:
    """Every submitted answer of a campaign, of excluded raters too, but those to items that the organiser
    wrote; in the order in which they were submitted."""
    steps: dict[int, dict[int, tuple[int, int]]] = {}  # assignment: system: highest revision and its step
    for assignment_id, system, revision, step in session.execute(
        select(Rating.assignment_id, Rating.system, Rating.revision, Rating.step)
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign_id, Item.kind.not_in(WRITTEN_KINDS))
    ):
        stored = steps.setdefault(assignment_id, {})
        stored[system] = max(stored.get(system, (0, 0)), (revision, step))
    items = {
        item.id: (
            item,
            reading_words(item.source, item.context, shown_of(item.outputs, item.output_drawn)),
        )
        for item in session.execute(
            select(
                Item.id,
                Item.kind,
                Item.original_id,
                Item.degraded,
                Item.segment_index,
                Item.source,
                Item.context,
                Item.outputs,
                Item.output_drawn,
            ).where(Item.campaign_id == campaign_id)
        )
    }
    answers = []
    for row in session.execute(
        select(Assignment.id, Assignment.item_id, Assignment.rater_id, Assignment.order, Assignment.active_ms)
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign_id, Assignment.submitted_at.is_not(None))
        .order_by(Assignment.submitted_at, Assignment.id)
    ):
        if row.id not in steps:
            continue  # of an item that the organiser wrote
        item, to_read = items[row.item_id]
        groups = tuple(tuple(group) for group in row.order)
        answers.append(
            RaterAnswer(
                rater=row.rater_id,
                item=row.item_id,
                kind=ItemKind(item.kind),
                original=item.original_id,
                degraded=item.degraded,
                groups=groups,
                steps=tuple(steps[row.id][group[0]][1] for group in groups),
                words=to_read,
                active_ms=row.active_ms,
                segment=item.segment_index,
            )
        )
    return answers
