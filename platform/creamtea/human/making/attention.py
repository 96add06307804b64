"""Attention checks: items with known answers among a rater's own ones, which look like any other.

A file in YAML or JSON:

    checks:
      - source: Guten Morgen
        outputs:
          - {text: Good morning, accepted: [5.0, 6.0], above: [2]}
          - {text: The cheese is blue, accepted: [1.0, 2.5]}
        warning: Please read both sentences before you give values.

`accepted` holds the lowest and the highest value of the protocol's scale, `above` the numbers of the outputs
of the item that must have a lower score, and `spans` the errors that must be marked, as in a tutorial
(`tutorial`).

A check with a `warning` is loud: after a wrong answer the rater reads it and may try again, at most
`MAX_WARNINGS` times. Without one it is silent: any answer is stored. Either way the first answer decides
whether the check was passed. Systems' statistics leave checks out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.document.checked import read_checked
from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.human.making.new_items import NewItem
from creamtea.human.making.settings import AttentionItem, AttentionOutput
from creamtea.human.making.tutorial import NO_SEGMENT, accepted_steps, check_outputs, expected_spans
from creamtea.human.protocols import Protocol, ScoredAnswer
from creamtea.human.protocols.expected import as_expected
from creamtea.human.protocols.spans import spans_of
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Item, Rating

MAX_WARNINGS = 2


class AttentionFile(Strict):
    checks: Annotated[list[AttentionItem], Field(min_length=1)]


def read_attention(path: Path) -> list[AttentionItem]:
    """The checks of a file; every mistake in it is one InputError with lines."""
    return read_checked(path, AttentionFile, "checks", "attention checks (YAML or JSON)").checks


def attention_items(checks: list[AttentionItem], protocol: Protocol) -> list[NewItem]:
    """An item for each check; its outputs are numbered from 0 as if they were systems.

    InputError for what no answer of the protocol can meet.
    """
    return [_item(f"attention check {number}", item, protocol) for number, item in enumerate(checks, 1)]


def _item(place: str, item: AttentionItem, protocol: Protocol) -> NewItem:
    check_outputs(place, [output.text for output in item.outputs], protocol)
    steps: dict[str, list[int]] = {}
    spans: dict[str, list[dict[str, Any]]] = {}
    above: list[list[int]] = []
    for at, output in enumerate(item.outputs):
        where = f"{place}, output {at + 1}"
        if output.accepted is not None:
            steps[str(at)] = accepted_steps(where, output.accepted, protocol)
        if output.spans is not None:
            spans[str(at)] = expected_spans(where, output, protocol)
        above += _above(where, at, output, len(item.outputs))
    if not above and not steps and not spans:
        raise InputError(f"{place}: any answer would pass: give an output `accepted`, `above` or `spans`")
    return NewItem(
        kind=ItemKind.ATTENTION,
        segment_index=NO_SEGMENT,
        source=item.source,
        context=list(item.context),
        systems=list(range(len(item.outputs))),
        outputs=[output.text for output in item.outputs],
        weight=0.0,
        guidance={"steps": steps, "spans": spans, "above": above, "warning": item.warning},
    )


def _above(place: str, at: int, output: AttentionOutput, outputs: int) -> list[list[int]]:
    for other in output.above:
        if other == at + 1 or other > outputs:
            raise InputError(
                f"{place}: above: this item has no other output {other}, only outputs 1 to {outputs}"
            )
    return [[at, other - 1] for other in output.above]


# ---------------------------------------------------------------- answers


def is_right(guidance: Mapping[str, Any], answers: Mapping[int, ScoredAnswer]) -> bool:
    """Whether answers (by an output's number from 0) are as a check's item says."""
    return (
        all(low <= answers[int(at)].step <= high for at, (low, high) in guidance["steps"].items())
        and all(answers[better].step > answers[worse].step for better, worse in guidance["above"])
        and all(
            as_expected(expected, spans_of(answers[int(at)].payload))
            for at, expected in guidance.get("spans", {}).items()
        )
    )


@dataclass(frozen=True)
class Attention:
    """A rater's attention checks: how many were answered, and how many of them right at the first try."""

    answered: int = 0
    passed: int = 0

    def suffices(self, share: float) -> bool:
        """Whether at least this share was passed; nothing failed where nothing was asked."""
        return self.passed >= round(share * self.answered, 9)  # 0.28 · 25 is 7.000000000000001


def attention_of(session: Session, campaign_id: int, rater_id: int | None = None) -> dict[int, Attention]:
    """By rater, of those who have answered a check, or of one rater."""
    rows = session.execute(
        select(
            *(Assignment.id, Assignment.rater_id, Assignment.warned, Item.guidance),
            *(Rating.system, Rating.step, Rating.payload),
        )
        .join(Item, Item.id == Assignment.item_id)
        .join(Rating, Rating.assignment_id == Assignment.id)
        .where(
            Item.campaign_id == campaign_id,
            Item.kind == ItemKind.ATTENTION,
            Rating.revision == 1,
            *([] if rater_id is None else [Assignment.rater_id == rater_id]),
        )
    )
    checks: dict[tuple[int, int], tuple[bool, dict[str, Any], dict[int, ScoredAnswer]]] = {}
    for assignment_id, rater_id, warned, guidance, system, step, payload in rows:
        if guidance is None:
            continue  # ratings made elsewhere do not say what was expected
        answers = checks.setdefault((rater_id, assignment_id), (warned > 0, guidance, {}))[2]
        answers[system] = ScoredAnswer(step, payload)
    found: dict[int, Attention] = {}
    for (rater_id, _), (warned_before, guidance, answers) in checks.items():
        so_far = found.get(rater_id, Attention())
        passed = not warned_before and is_right(guidance, answers)
        found[rater_id] = Attention(so_far.answered + 1, so_far.passed + passed)
    return found
