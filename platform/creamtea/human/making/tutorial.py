"""Tutorial items: written by the organiser, with the answers that are accepted and why.

A file in YAML or JSON:

    items:
      - source: Guten Morgen
        outputs:
          - {text: Good morning, accepted: [5.0, 6.0]}
          - {text: Good mourning, accepted: [1.0, 3.0]}
        explanation: '"Good mourning" is well-formed and says something else.'

Raters see the outputs in a drawn order: explanations quote them, because "the second" may be any.

`accepted` holds values of the protocol's scale; for preference 2 is better, 1 the same, 0 worse. Where raters
mark errors, `spans` holds those that they must find, beside `accepted` or in its place:

          - text: Good mourning
            spans:
              - {start: [5, 5], end: [12, 12], severity: major}

Places are characters of the text from 0, the last one included, each as the lowest and the highest that are
right; severity and category may be left open, and an omission has no places. An empty list says that there is
no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from creamtea.document.checked import read_checked
from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.human.making.new_items import NewItem
from creamtea.human.making.settings import TutorialItem, TutorialOutput
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import MarksErrors
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted

NO_SEGMENT = -1  # an item's segment_index where it is none of the test set


class TutorialFile(Strict):
    items: Annotated[list[TutorialItem], Field(min_length=1)]


def read_tutorial(path: Path) -> list[TutorialItem]:
    """The items of a file; every mistake in it is one InputError with lines."""
    return read_checked(path, TutorialFile, "items", "a tutorial (YAML or JSON)").items


def tutorial_items(items: list[TutorialItem], protocol: Protocol) -> list[NewItem]:
    """An item for each tutorial item; its outputs are numbered from 0 as if they were systems.

    InputError for a wrong number of outputs, for values that the protocol's scale lacks, and for equal
    texts with different answers.
    """
    return [_item(number, item, protocol) for number, item in enumerate(items, start=1)]


def _item(number: int, item: TutorialItem, protocol: Protocol) -> NewItem:
    place = f"tutorial item {number}"
    texts = [output.text for output in item.outputs]
    check_outputs(place, texts, protocol)
    steps: dict[str, list[int]] = {}
    spans: dict[str, list[dict[str, Any]]] = {}
    for position, output in enumerate(item.outputs):
        where = f"{place}, output {position + 1}"
        _check_what_is_said(where, output, protocol)
        if output.accepted is not None:
            steps[str(position)] = accepted_steps(where, output.accepted, protocol)
        if output.spans is not None:
            spans[str(position)] = expected_spans(where, output, protocol)
    try:
        if len(steps) == len(texts):
            protocol.check_accepted(list(steps.values()))
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
    return NewItem(
        kind=ItemKind.TUTORIAL,
        segment_index=NO_SEGMENT,
        source=item.source,
        context=list(item.context),
        systems=list(range(len(texts))),
        outputs=texts,
        weight=0.0,
        guidance={
            "steps": steps,
            **({"spans": spans} if spans else {}),
            "explanation": item.explanation,
        },
    )


def _check_what_is_said(place: str, output: TutorialOutput, protocol: Protocol) -> None:
    """InputError for an output about which too little is said, or what the protocol does not ask for."""
    if not isinstance(protocol, MarksErrors):
        if output.accepted is None and output.spans is None:
            raise InputError(f"{place}: accepted: required key is missing")
        return
    if output.accepted is not None and not protocol.scored:
        raise InputError(f"{place}: accepted: raters give no value in {protocol.name}: say `spans`")
    if output.accepted is None and output.spans is None:
        wanted = "`accepted`, `spans` or both" if protocol.scored else "`spans`"
        raise InputError(f"{place}: any answer would be right: give {wanted}")


def expected_spans(place: str, output: TutorialOutput, protocol: Protocol) -> list[dict[str, Any]]:
    """The errors that must be marked, as they are stored; InputError for those that nobody can mark."""
    if not isinstance(protocol, MarksErrors):
        raise InputError(f"{place}: spans: raters mark no errors in {protocol.name}")
    for span in output.spans or ():
        try:
            span.check(output.text, protocol.taxonomy or protocol.usual_taxonomy)
        except ValueError as error:
            raise InputError(f"{place}: spans: {error}") from None
    return [span.model_dump(mode="json", exclude_defaults=True) for span in output.spans or ()]


def check_outputs(place: str, texts: Sequence[str], protocol: Protocol) -> None:
    """InputError for a number of outputs that no item of the protocol has, and for equal ones."""
    lowest, highest = protocol.min_outputs, protocol.max_outputs
    if not lowest <= len(texts) <= highest:
        allowed = str(lowest) if lowest == highest else f"{lowest} to {highest}"
        raise InputError(
            f"{place}: {counted(len(texts), 'output')}; an item of {protocol.name} has {allowed}"
        )
    if len(set(texts)) < len(texts):
        raise InputError(f"{place}: two of its outputs are the same text, which is shown once: leave one out")


def accepted_steps(place: str, accepted: Sequence[float], protocol: Protocol) -> list[int]:
    """The lowest and highest accepted step of a pair of values; InputError for what the scale lacks."""
    try:
        lowest, highest = (protocol.scale.step_of(str(value)) for value in accepted)
    except ValueError as error:
        raise InputError(f"{place}: accepted: {error}") from None
    if lowest > highest:
        raise InputError(f"{place}: accepted: the lowest value comes first, not {list(accepted)}")
    return [lowest, highest]
