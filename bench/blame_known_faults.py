"""Whether `creamtea blame` finds the fault that a system was given.

    creamtea run studies/blame-multi30k.yaml --data DIR
    python bench/blame_known_faults.py blame-multi30k --test-set test2016

The study has a system `none`, systems with one known fault each (`model`: a worse one; `search`: greedy
instead of a beam; `selection`: a harsh one), one with all faults (`model-search-selection`), and those that
lack one of them (`model-search`). What is marked, and which label would be right, follows from the outputs
and the reference alone:

- In a system with one fault, a stretch of words that the reference does not have is marked if `none` has
  there what the reference has (with the same word, or end of the sentence, on both sides). The fault did it.
- In the system with all faults, a stretch is marked if of the systems that lack one fault exactly one has
  there what the reference has. The fault that it lacks is the truth.

The labels see neither `none` nor the systems that lack a fault; of better translations they know the
reference. Printed are the labels by the truth, the share of right ones with its interval, and what chance
gives: labels drawn with the same shares as those given, but without looking.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain

from blame_by_rule import Disturbed, campaign_by_rule
from sqlalchemy import select

from creamtea.blame.gathering import Settings as Searches
from creamtea.blame.gathering import gather
from creamtea.blame.labels import Evidence, Mark, Origin, label
from creamtea.settings import Settings
from creamtea.stats.estimate import clustered_interval
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import Blame, Campaign, Hypothesis, Segment
from creamtea.words import word_spans, words

FAULTS = (Origin.MODEL, Origin.SEARCH, Origin.SELECTION)
NONE = "none"


def with_faults(faults: Iterable[Origin]) -> str:
    """The system with these faults."""
    return "-".join(sorted(fault.value for fault in faults)) or NONE


@dataclass(frozen=True)
class Stretch:
    """Words of an output that the reference does not have: their characters, and what stands there in the
    reference with a neighbour on both sides."""

    mark: Mark
    wanted: tuple[str, ...]

    def right_in(self, text: str) -> bool:
        framed, size = _framed(text), len(self.wanted)
        return any(framed[at : at + size] == self.wanted for at in range(len(framed) - size + 1))


def _framed(text: str) -> tuple[str, ...]:
    return ("\n", *words(text), "\n")  # no word is a line break


def stretches(output: str, reference: str) -> list[Stretch]:
    """An omission has no words and is none."""
    spans, framed = word_spans(output), _framed(reference)
    codes = SequenceMatcher(None, words(output), words(reference), autojunk=False).get_opcodes()
    return [
        Stretch(Mark(spans[first][0], spans[last - 1][1] - 1), framed[begin : end + 2])
        for tag, first, last, begin, end in codes
        if tag in ("replace", "delete")
    ]


Truth = dict[tuple[int, Mark], Origin]  # by segment


@dataclass(frozen=True)
class Outputs:
    """Of a test set: segments and what each system makes of them."""

    segments: dict[int, tuple[str, str]]  # source, reference
    texts: Mapping[str, Mapping[int, str]]  # by system

    @classmethod
    def of(cls, database: Database, study: str, test_set: str) -> Outputs:
        with database.session() as session:
            nodes = [
                node
                for node in study_nodes(session, find_study(session, study).id)
                if node.labels.get("test_set") == test_set
            ]
            (texts,) = [node.key for node in nodes if node.kind == "test_set"]
            rows = session.scalars(select(Segment).where(Segment.step_key == texts).order_by(Segment.index))
            segments = {row.index: (row.source, row.reference) for row in rows}
            outputs: dict[str, dict[int, str]] = {}
            for node in nodes:
                if node.kind == "decode":
                    found = session.execute(
                        select(Hypothesis.index, Hypothesis.text).where(Hypothesis.step_key == node.key)
                    )
                    outputs[str(node.labels["system"])] = dict(found.all())
            return cls(segments, outputs)

    @property
    def faults(self) -> list[Origin]:
        """Those that systems of the study have."""
        return [fault for fault in FAULTS if fault.value in self.texts]

    def of_one_fault(self, fault: Origin) -> Truth:
        return self._truth(fault.value, {fault: NONE})

    def of_all(self) -> Truth:
        lacking = {fault: with_faults({*self.faults} - {fault}) for fault in self.faults}
        return self._truth(with_faults(self.faults), lacking)

    def _truth(self, system: str, mended_by: Mapping[Origin, str]) -> Truth:
        truth: Truth = {}
        for index, (_, reference) in self.segments.items():
            for stretch in stretches(self.texts[system][index], reference):
                causes = [
                    fault for fault, other in mended_by.items() if stretch.right_in(self.texts[other][index])
                ]
                if len(causes) == 1:
                    truth[index, stretch.mark] = causes[0]
        return truth


@dataclass(frozen=True)
class Labelled:
    """A mark with the fault that is to blame, and the label that it was given."""

    segment: int
    truth: Origin
    found: Origin


def labelled(
    database: Database,
    store: ArtefactStore,
    study: str,
    test_set: str,
    system: str,
    outputs: Outputs,
    truth: Truth,
    searches: Searches,
) -> list[Labelled]:
    """A campaign with these marks, looked into as `creamtea blame` does."""
    marks: dict[int, list[Mark]] = defaultdict(list)
    for segment, mark in truth:
        marks[segment].append(mark)
    found = [
        Disturbed(segment, outputs.segments[segment][0], outputs.texts[system][segment], "", tuple(of))
        for segment, of in marks.items()
    ]
    name = f"faults: {system}"
    campaign_by_rule(database, study, test_set, name, [system], found)
    gather(database, store, study, name, searches)
    with database.session() as session:
        rows = session.execute(
            select(Blame.segment_index, Blame.evidence).join(Campaign).where(Campaign.name == name)
        )
        evidence = {segment: Evidence.of(row) for segment, row in rows}
    return [
        Labelled(segment, fault, label(evidence[segment], mark, evidence[segment].references()).origin)
        for (segment, mark), fault in truth.items()
    ]


@dataclass(frozen=True)
class Agreement:
    """`right`: the share of right labels with its interval; `chance`: what labels would have that are given
    with the same shares, whatever the mark; `balanced`: the mean over the faults of the share of right
    labels, for which chance gives a third (of two faults a half)."""

    right: tuple[float, float, float]
    chance: float
    balanced: float

    @classmethod
    def of(cls, cases: list[Labelled]) -> Agreement:
        by_segment: dict[int, list[bool]] = defaultdict(list)
        for case in cases:
            by_segment[case.segment].append(case.found is case.truth)
        counts, sizes = [sum(one) for one in by_segment.values()], list(map(len, by_segment.values()))
        truth, found = Counter(case.truth for case in cases), Counter(case.found for case in cases)
        hits = Counter(case.truth for case in cases if case.found is case.truth)
        of_fault = [hits[fault] / truth[fault] for fault in truth]
        return cls(
            (sum(counts) / sum(sizes), *clustered_interval(counts, sizes)),
            sum(truth[fault] * found[fault] for fault in FAULTS) / len(cases) ** 2,
            sum(of_fault) / len(of_fault),
        )


def confusion(cases: list[Labelled]) -> list[str]:
    """A line for each fault: how many of its marks have which label; then the agreement."""
    lines = []
    for fault in FAULTS:
        of = [case for case in cases if case.truth is fault]
        if of:
            found = Counter(case.found for case in of)
            given = ", ".join(f"{origin.value} {found[origin]}" for origin in Origin)
            share, low, high = Agreement.of(of).right
            lines.append(f"{fault.value}: {len(of)} marks: {given}; right {_percent(share, low, high)}")
    agreement = Agreement.of(cases)
    lines.append(
        f"{len(cases)} marks: right {_percent(*agreement.right)}, by chance {100 * agreement.chance:.0f} %; "
        f"mean over the faults {100 * agreement.balanced:.0f} %"
    )
    return lines


def _percent(share: float, low: float, high: float) -> str:
    return f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study")
    parser.add_argument("--test-set", default="test")
    parser.add_argument("--beam", type=int, default=Searches.beam)
    parser.add_argument("--states", type=int, default=Searches.states)
    chosen = parser.parse_args()
    settings = Settings.load()
    store, database = ArtefactStore(settings.artefacts), open_database(settings.database_url)
    searches, outputs = (
        Searches(chosen.beam, chosen.states),
        Outputs.of(database, chosen.study, chosen.test_set),
    )

    def look(system: str, truth: Truth) -> list[Labelled]:
        began = time.monotonic()
        cases = labelled(database, store, chosen.study, chosen.test_set, system, outputs, truth, searches)
        print(f"{system}: {len(truth)} marks in {time.monotonic() - began:.0f} s", flush=True)
        return cases

    print("one fault a system")
    each = [look(fault.value, outputs.of_one_fault(fault)) for fault in outputs.faults]
    for line in confusion(list(chain.from_iterable(each))):
        print(f"  {line}")
    print("all faults in one system")
    for line in confusion(look(with_faults(outputs.faults), outputs.of_all())):
        print(f"  {line}")


if __name__ == "__main__":
    main()
