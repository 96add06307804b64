"""The answers of a campaign that count, which is all that the formats of other tools hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from creamtea.human.formats.content import AnswerContent, Content, ItemContent, ScoreContent
from creamtea.store.item_kinds import CONTROL_KINDS, SYSTEM_KINDS

WITH_CONTROLS = (*SYSTEM_KINDS, *CONTROL_KINDS)


@dataclass(frozen=True)
class CountedScore:
    """One rater's last score of one system on an item."""

    item: ItemContent
    answer: AnswerContent
    score: ScoreContent

    @property
    def output(self) -> str:
        return self.item.outputs[self.item.systems.index(self.score.system)]

    @property
    def judged(self) -> tuple[str, int, str]:
        """The rater and what they rated: a second item with the same is a second opinion."""
        return self.answer.rater, self.item.segment, self.score.system


def counted_scores(content: Content, kinds: Collection[str] = SYSTEM_KINDS) -> Iterator[CountedScore]:
    """By item, rater and system: last revisions by raters who are not excluded, on items of these kinds."""
    items = {item.position: item for item in content.items if item.kind in kinds}
    excluded = content.excluded
    for answer in sorted(content.answers, key=lambda answer: (answer.item, answer.rater)):
        if answer.item not in items or answer.rater in excluded:
            continue
        for score in sorted(answer.scores, key=lambda score: content.systems.index(score.system)):
            if score.revision == answer.last_revision:
                yield CountedScore(items[answer.item], answer, score)


def first_opinions(content: Content) -> Iterator[CountedScore]:
    """Of outputs that a rater rated on several items, the first, for formats that hold one of each."""
    seen: set[tuple[str, int, str]] = set()
    for counted in counted_scores(content):
        if counted.judged not in seen:
            seen.add(counted.judged)
            yield counted
