"""Items with known answers: practice items (the tutorial), which explain, and attention checks, which test.

The organiser writes both, in YAML or JSON (examples: docs/guide-organiser.md). Raters see the outputs in a
drawn order: explanations must quote them, because any output may be the second. A check looks like any other
item.

`accepted` has the lowest and the highest accepted value of the protocol's scale; in preference, 2 is better,
1 the same, 0 worse. `above` has the numbers of the item's outputs that must have a lower score. If raters
mark errors, `spans` has the errors that they must find, beside `accepted` or instead of it. The start and the
end of an error (the last character, counted from 0) are given as the lowest and the highest accepted place;
severity and category may be left open, and an omission has no places. An empty list: there is no error.

A check with a `warning` is loud: after a wrong answer the rater reads the warning and may try again, at most
`MAX_WARNINGS` times. A check without a warning is silent: any answer is stored. In both cases the first
answer decides whether the rater passed. Statistics of systems leave both kinds of items out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.document.document import read_checked
from creamtea.document.values import Strict
from creamtea.errors import InputError, about
from creamtea.human.making.item_files import FilesByTarget, with_files
from creamtea.human.making.settings import AttentionItem, AttentionOutput, TutorialItem, TutorialOutput
from creamtea.human.protocols import Protocol, ScoredAnswer
from creamtea.human.protocols.spans import ExpectedSpan, MarksErrors, as_expected, spans_of
from creamtea.human.record import ItemContent, distinct_outputs, output_names
from creamtea.store.tables import Assignment, Item, ItemKind, KnownAnswer, Rating, StoredSpan
from creamtea.wording import counted

MAX_WARNINGS = 2  # per attention check
NO_SEGMENT = -1  # the segment of an item that is not from the test set


class TutorialFile(Strict):
    items: Annotated[list[TutorialItem], Field(min_length=1)]


class AttentionFile(Strict):
    checks: Annotated[list[AttentionItem], Field(min_length=1)]


def read_tutorial(path: Path) -> list[TutorialItem]:
    """Read the practice items of a file; one InputError has a line for every mistake."""
    return read_checked(path, TutorialFile, "items", "a tutorial (YAML or JSON)").items


def read_attention(path: Path) -> list[AttentionItem]:
    """Read the attention checks of a file; one InputError has a line for every mistake."""
    return read_checked(path, AttentionFile, "checks", "attention checks (YAML or JSON)").checks


def written_items(
    items: Sequence[TutorialItem | AttentionItem],
    protocol: Protocol,
    systems: Sequence[str],
    files: FilesByTarget | None = None,
) -> list[ItemContent]:
    """Make an item from each practice item or check; the campaign's first systems name its outputs.

    InputError if no answer could be right, or any would be: a wrong number of outputs, values that the scale
    lacks, equal outputs, or nothing that answers must meet.
    """
    made_items = []
    for number, item in enumerate(items, start=1):
        is_check = isinstance(item, AttentionItem)
        place = f"{'attention check' if is_check else 'practice item'} {number}"
        made = _written_item(place, item, protocol, systems)
        with about("media"):
            target = "attention" if is_check else "tutorial"
            made = with_files(made, (files or {}).get((target, number), ()), protocol)
        texts = distinct_outputs(made)
        with _naming(place):
            if "" in texts:
                without = f"output {texts.index('') + 1}, text: required key is missing"
                raise ValueError(f"{without}, as `media` names no file of this output")
            if len(set(texts)) < len(texts):
                raise ValueError(
                    "two of its outputs are the same text or file, which is shown once: leave one out"
                )
        made_items.append(made)
    return made_items


def _written_item(
    place: str, item: TutorialItem | AttentionItem, protocol: Protocol, systems: Sequence[str]
) -> ItemContent:
    is_check = isinstance(item, AttentionItem)
    texts = [output.text for output in item.outputs]
    lowest, highest = protocol.min_outputs, protocol.max_outputs
    with _naming(place):
        if not lowest <= len(texts) <= highest:
            allowed = str(lowest) if lowest == highest else f"{lowest} to {highest}"
            raise ValueError(f"{counted(len(texts), 'output')}; an item of {protocol.name} has {allowed}")
    steps: dict[str, list[int]] = {}
    spans: dict[str, list[StoredSpan]] = {}
    above: list[list[int]] = []
    for at, output in enumerate(item.outputs):
        with _naming(f"{place}, output {at + 1}"):
            if not is_check:
                _check_says_enough(output, protocol)
            if output.accepted is not None:
                with _naming("accepted"):
                    low, high = (protocol.scale.step_of(str(value)) for value in output.accepted)
                    if low > high:
                        raise ValueError(f"the lowest value comes first, not {output.accepted}")
                    steps[str(at)] = [low, high]
            if output.spans is not None:
                with _naming("spans"):
                    spans[str(at)] = _expected_spans(output.spans, output.text, protocol)
            for other in output.above if isinstance(output, AttentionOutput) else ():
                if other == at + 1 or other > len(texts):
                    others = f"this item has no other output {other}, only outputs 1 to {len(texts)}"
                    raise ValueError(f"above: {others}")
                above.append([at, other - 1])
    with _naming(place):
        if len(steps) == len(texts):
            protocol.check_accepted(list(steps.values()))
        _check_order(steps, above, protocol.scale.steps - 1)
        if is_check and not above and not steps and not spans:
            raise ValueError("any answer would pass: give an output `accepted`, `above` or `spans`")
    guidance: KnownAnswer = {"steps": steps}
    if isinstance(item, AttentionItem):
        guidance |= {"spans": spans, "above": above, "warning": item.warning}
    else:
        guidance |= {**({"spans": spans} if spans else {}), "explanation": item.explanation}
    return ItemContent(
        kind=ItemKind.ATTENTION if is_check else ItemKind.TUTORIAL,
        segment=NO_SEGMENT,
        source=item.source,
        context=tuple(item.context),
        systems=output_names(systems)[: len(texts)],
        outputs=tuple(texts),
        weight=0.0,
        guidance=guidance,
    )


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Turn an error into an InputError whose message begins with its place."""
    try:
        yield
    except (ValueError, InputError) as error:
        raise InputError(f"{place}: {error}") from None


def _check_says_enough(output: TutorialOutput, protocol: Protocol) -> None:
    """Raise ValueError if an output of a practice item does not say which answers are accepted."""
    nothing = output.accepted is None and output.spans is None
    if not isinstance(protocol, MarksErrors):
        if nothing:
            raise ValueError("accepted: required key is missing")
    elif output.accepted is not None and not protocol.scored:
        raise ValueError(f"accepted: raters give no value in {protocol.name}: use `spans`")
    elif nothing:
        wanted = "`accepted`, `spans` or both" if protocol.scored else "`spans`"
        raise ValueError(f"any answer would be accepted: give {wanted}")


def _expected_spans(spans: Sequence[ExpectedSpan], text: str, protocol: Protocol) -> list[StoredSpan]:
    """Return the errors that must be marked in their stored form; ValueError if one cannot be marked."""
    if not isinstance(protocol, MarksErrors):
        raise ValueError(f"raters mark no errors in {protocol.name}")
    for span in spans:
        span.check(text, protocol.taxonomy or protocol.usual_taxonomy)
    return [span.model_dump(mode="json", exclude_defaults=True) for span in spans]


def _check_order(steps: Mapping[str, Sequence[int]], above: Sequence[Sequence[int]], last: int) -> None:
    """Raise ValueError if no scores can be in these ranges and in this order, so that nobody could pass."""
    lower = {better: [worse for other, worse in above if other == better] for better, _ in above}
    lowest: dict[int, int] = {}
    try:
        for at in TopologicalSorter(lower).static_order():
            low, high = steps.get(str(at), (0, last))
            lowest[at] = max([low, *(lowest[worse] + 1 for worse in lower.get(at, ()))])
            if lowest[at] > high:
                raise ValueError(f"output {at + 1} cannot be above the others within its values")
    except CycleError:
        raise ValueError("the outputs' `above` form a circle") from None


# ---------------------------------------------------------------- answers


def is_right(guidance: KnownAnswer, answers: Mapping[int, ScoredAnswer]) -> bool:
    """Return True if answers (by an output's number from 0) are right for a check."""
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
    """A rater's attention checks: how many were answered, and how many were right at the first try."""

    answered: int = 0
    passed: int = 0

    def suffices(self, share: float) -> bool:
        """Return True if at least this share was passed, or if nothing was asked."""
        return self.passed >= round(share * self.answered, 9)  # 0.28 · 25 is 7.000000000000001


def attention_of(session: Session, campaign_id: int, rater_id: int | None = None) -> dict[int, Attention]:
    """Count the attention checks of each rater who has answered one, or of one rater."""
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
    checks: dict[tuple[int, int], tuple[bool, KnownAnswer, dict[int, ScoredAnswer]]] = {}
    for assignment_id, rater_id, warned, guidance, system, step, payload in rows:
        if guidance is None:
            continue  # imported ratings do not say what was expected
        answers = checks.setdefault((rater_id, assignment_id), (warned > 0, guidance, {}))[2]
        answers[system] = ScoredAnswer(step, payload)
    counts: dict[int, Attention] = {}
    for (rater_id, _), (warned_before, expected, answers) in checks.items():
        so_far = counts.get(rater_id, Attention())
        passed = not warned_before and is_right(expected, answers)
        counts[rater_id] = Attention(so_far.answered + 1, so_far.passed + passed)
    return counts
