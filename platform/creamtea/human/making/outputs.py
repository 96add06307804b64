"""What a campaign is made from: a study's outputs, segment by segment, its metrics' segment values, and the
file that names the documents.

Only rows and their labels are read, never how a system came to its outputs. Where several training seeds have
outputs of a system, its first ones in the order of the plan are taken.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.store.queries import OUTPUTS, Node, study_nodes
from creamtea.store.rows import check_text
from creamtea.store.tables import Campaign, Hypothesis, Segment, SegmentScore, StepInput, StudyRow
from creamtea.wording import counted, key_name

ABSENT = "-"  # the line of a segment that a campaign made elsewhere does not have
WITH_DOMAIN = "DOMAIN TAB DOCUMENT"
SHOWN = "protocol.show_reference"


@dataclass(frozen=True)
class Line:
    """A segment of the test set with the output of each system, in the campaign's order of systems."""

    index: int
    source: str
    reference: str
    outputs: tuple[str, ...]
    document: str = ""
    context: tuple[str, ...] = ()  # the sources before it, in its document

    def differs(self, between: Sequence[int] = ()) -> bool:
        """Return whether the outputs of these systems (positions; by default of all) are not all the same."""
        return len({self.outputs[system] for system in between or range(len(self.outputs))}) > 1


def check_names(session: Session, study: StudyRow, test_set: str, systems: Sequence[str]) -> None:
    """Raise InputError for a test set or a system that the study does not have."""
    nodes = study_nodes(session, study.id, *OUTPUTS)
    for label, wanted in (("test_set", [test_set]), ("system", systems)):
        # what an analysis decodes may belong to no test set and no system
        known = sorted({str(node.labels[label]) for node in nodes if label in node.labels})
        for name in wanted:
            if name not in known:
                what = label.replace("_", " ")
                raise InputError(f"study {study.name!r} has no {what} {name!r}; it has {', '.join(known)}")


@dataclass
class Texts:
    """A test set with outputs, of a study or one direction of files; every list has one entry per segment."""

    languages: tuple[str, str]  # codes: source, target
    sources: list[str] = field(default_factory=list)
    outputs: dict[str, list[str]] = field(default_factory=dict)  # by system; may name references
    references: dict[str, list[str]] = field(default_factory=dict)  # by name; the first is the test set's
    documents: Documents | None = None
    notices: list[str] = field(default_factory=list)  # for the organiser: what was omitted or not cut
    systems: list[str] = field(default_factory=list)  # all, also those whose outputs were not read
    # of a study: its name, its systems that are references, and references by their numbers
    study: str = ""
    human: list[str] = field(default_factory=list)
    numbered: dict[int, str] = field(default_factory=dict)

    def lines(self, test_set: str, documents: Sequence[str] | None = None, context: int = 0) -> list[Line]:
        """Return every segment with its outputs and the first reference.

        `documents` names the document of each segment; `context` sources before a segment go with it, from
        its own document only. InputError where there is not one document per segment.
        """
        names = _documents(documents, len(self.sources), test_set)
        reference = next(iter(self.references.values()), [""] * len(self.sources))
        return [
            Line(
                at,
                source,
                reference[at],
                tuple(texts[at] for texts in self.outputs.values()),
                names[at],
                tuple(
                    self.sources[before]
                    for before in range(max(0, at - context), at)
                    if names[before] == names[at]
                ),
            )
            for at, source in enumerate(self.sources)
        ]

    def shown_references(self, numbers: Sequence[int], test_set: str) -> list[list[str]]:
        """Return of each segment the references with these numbers, from 1; empty ones are left out.

        InputError for one that is missing, named twice or rated.
        """
        found: list[list[str]] = [[] for _ in self.sources]
        numbered = self.numbered or dict(enumerate(self.references, start=1))
        for number in numbers:
            name, wrong = numbered.get(number), ""
            if name is None:
                wrong = f"there is no such reference; the texts have {', '.join(self.references) or 'none'}"
                if self.study:
                    give = f"give it one with `reference: {number}` and run it again"
                    wrong = f"no system of study {self.study!r} is that reference: {give}"
            elif name in self.outputs:
                part = f"that is system {name!r}, which takes part: raters would see the text they rate"
                wrong = f"{part}. Show another reference, or leave the system out"
            elif numbers.count(number) > 1:
                wrong = "it is named twice: name each reference once"
            elif not any(self.references[name]):
                wrong = f"test set {test_set!r} has no reference to show: leave it out"
            if name is None or wrong:
                raise InputError(f"{key_name(SHOWN)}: {number}: {wrong}", about=SHOWN)
            for texts, text in zip(found, self.references[name], strict=True):
                texts += [text] if text else []
        return found


def study_texts(
    session: Session, study: StudyRow, test_set: str, systems: Sequence[str], shown: Sequence[int] = ()
) -> Texts:
    """Read the outputs of a study's systems, and its references.

    Reference 1 is the test set's `target`, which is always read. A further reference is a system of the study
    (`reference: 2`), which is read if it is `shown`. InputError if outputs are missing.
    """
    nodes = study_nodes(session, study.id, *OUTPUTS)
    keys: list[str] = []

    def outputs(system: str) -> list[str]:
        what = f"outputs on {test_set!r}"
        keys.append(succeeded_key(nodes, study, what, system=system, test_set=test_set))
        texts = select(Hypothesis.text).where(Hypothesis.step_key == keys[-1])
        return list(session.scalars(texts.order_by(Hypothesis.index)))

    of_systems = {system: outputs(system) for system in systems}
    test_sets = select(StepInput.input_key).where(StepInput.step_key == keys[0], StepInput.role == "test_set")
    segments = session.execute(
        select(Segment.source, Segment.reference)
        .where(Segment.step_key.in_(test_sets))
        .order_by(Segment.index)
    ).all()
    numbers = {name: spec.get("reference") for name, spec in study.spec["systems"].items()}
    human = {name: number for name, number in numbers.items() if number is not None}
    numbered = {1: "", **{number: name for name, number in human.items()}}
    references = {numbered[1]: [reference for _, reference in segments]}
    for number in {*shown} & numbered.keys() - {1}:
        if numbered[number] not in of_systems:
            references[numbered[number]] = outputs(numbered[number])
    return Texts(
        (study.spec["languages"]["source"], study.spec["languages"]["target"]),
        [source for source, _ in segments],
        of_systems,
        references,
        study=study.name,
        human=list(human),
        numbered=numbered,
    )


def _documents(documents: Sequence[str] | None, segments: int, test_set: str) -> list[str]:
    if documents is None:
        return [""] * segments
    if len(documents) != segments:
        raise InputError(
            f"{key_name('documents')}: {counted(len(documents), 'line')}, and {test_set!r} has "
            f"{counted(segments, 'segment')}: one line per segment",
            about="documents",
        )
    if "" in documents:
        raise InputError(
            f"{key_name('documents')}: line {list(documents).index('') + 1}: found {ABSENT!r}, which is for "
            "ratings made elsewhere: name the segment's document",
            about="documents",
        )
    return list(documents)


def metric_names(session: Session, study: StudyRow) -> list[str]:
    """Return the names under which the study's scores are stored, as "chrf++", sorted."""
    return sorted({str(node.labels.get("metric")) for node in study_nodes(session, study.id, "score")})


def read_metric(
    session: Session, study: StudyRow, test_set: str, systems: Sequence[str], metric: str
) -> dict[int, tuple[float, ...]]:
    """Read a metric's values: segment → value of each system, higher is better.

    The values of an error metric change their sign. InputError if the study has no such values.
    """
    known = metric_names(session, study)
    if metric not in known:
        raise InputError(
            f"study {study.name!r} has no metric {metric!r}; it has {', '.join(known) or 'none'}: "
            f"{key_name('sample.metrics')}",
            about="sample.metrics",
        )
    nodes = study_nodes(session, study.id, "score")
    columns = []
    for system in systems:
        what = f"values of {metric!r} on {test_set!r}"
        key = succeeded_key(nodes, study, what, system=system, test_set=test_set, metric=metric)
        values = segment_values(session, key)
        if not values:
            raise InputError(
                f"metric {metric!r} has no segment values of system {system!r} on {test_set!r}: choose "
                f"another with {key_name('sample.metrics')}, or another {key_name('sample.kind')}",
                about="sample.metrics",
            )
        node = first_node(nodes, system=system, test_set=test_set, metric=metric)
        sign = -1.0 if node and node.labels.get("better") == "lower" else 1.0
        columns.append({index: sign * value for index, value in values.items()})
    return {index: tuple(values[index] for values in columns) for index in columns[0]}


def segment_values(session: Session, key: str) -> dict[int, float]:
    """Read the segment scores of a step, by segment."""
    rows = select(SegmentScore.index, SegmentScore.value).where(SegmentScore.step_key == key)
    return dict(session.execute(rows).all())


def first_node(nodes: Sequence[Node], **labels: str) -> Node | None:
    """Return the first node in the plan's order with these labels: that of a system's first training seed."""
    return next((node for node in nodes if labels.items() <= node.labels.items()), None)


def succeeded_key(nodes: Sequence[Node], study: StudyRow, what: str, **labels: str) -> str:
    """Return the key of the first step with these labels; InputError unless it has succeeded."""
    node = first_node(nodes, **labels)
    if node is None:
        raise InputError(f"study {study.name!r} never makes {what} with system {labels['system']!r}")
    if node.state != "succeeded":
        yet, remedy = (" yet", "run the study first, ") if node.state != "failed" else ("", "")
        raise InputError(
            f"system {labels['system']!r} has no {what}{yet} (its step {node.predicate}): "
            f"{remedy}see `creamtea status {study.name}`"
        )
    return node.key


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class Documents:
    """Which document each segment of a test set belongs to, and the domains of the documents."""

    names: tuple[str, ...]  # of each segment's document; "" where the line is `ABSENT`
    domains: Mapping[str, str] = field(default_factory=dict)  # document → domain; empty without domains

    @property
    def lines(self) -> dict[str, list[int]]:
        """Document → the numbers of its lines, 0 for the first."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self.names):
            if name:
                found[name].append(number)
        return dict(found)


def read_documents(text: str, place: str, *, with_domains: bool = False) -> Documents:
    """Read the documents of a file's text; `place` is what messages call the file.

    The file is as WMT and mt-metrics-eval have it: `DOMAIN TAB DOCUMENT` a line, or `DOCUMENT` alone. Instead
    of the tab there may be blanks, as mt-metrics-eval allows, where each line has two words: of other lines,
    blanks are part of the name.

    InputError with the line for one that names no document, that gives a document a second domain, or that
    has a domain where other lines have none. `with_domains`: all must have one.
    """
    names: list[str] = []
    domains: dict[str, str] = {}
    alone = False  # whether documents stand without a domain
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    by_blanks = all(len(line.split()) == 2 or line.strip() == ABSENT for line in lines)
    for number, line in enumerate(lines, start=1):
        words = line.split() if by_blanks else [word.strip() for word in re.split(r"\t+", line.strip(" \r"))]
        if words == [ABSENT]:
            names.append("")
            continue
        *before, document = _checked_words(words, line, f"{place}, line {number}", with_domains=with_domains)
        if before and domains.setdefault(document, before[0]) != before[0]:
            raise InputError(
                f"{place}, line {number}: document {document!r} is of domain {before[0]!r} here and of "
                f"{domains[document]!r} before: a document has one"
            )
        alone |= not before
        if alone and domains:
            raise InputError(
                f"{place}, line {number}: some lines have a domain and some have none: give all of them one "
                f"({WITH_DOMAIN}), or none"
            )
        names.append(document)
    return Documents(tuple(names), domains)


def domain_settings(domains: Mapping[str, str], test_set: str) -> dict[str, dict[str, str]]:
    """Return a campaign's settings with each document's domain; none if all are the test set's name."""
    return {"domains": dict(domains)} if set(domains.values()) - {test_set} else {}


def _checked_words(words: list[str], line: str, place: str, *, with_domains: bool) -> list[str]:
    fields = (2,) if with_domains else (1, 2)
    if len(words) not in fields or not all(words):
        allowed = WITH_DOMAIN if with_domains else f"DOCUMENT, or {WITH_DOMAIN}"
        raise InputError(f"{place}: found {line[:60]!r}; allowed: {allowed}")
    try:
        return [check_text(word) for word in words]
    except ValueError as error:
        raise InputError(f"{place}: found a name {error}") from None


# ---------------------------------------------------------------- campaigns on a study's outputs
#
# A study may be submitted again and again: with another metric its outputs are the same, and with another
# text in the same file they are not. What decides is which steps made the outputs that raters saw.


def campaigns_of(session: Session, study: StudyRow) -> tuple[list[Campaign], list[Campaign]]:
    """Return the launched campaigns of all submissions of a study's name, oldest first.

    The first list has those that rate outputs of this submission, the second the others.
    """
    launched = session.scalars(
        select(Campaign)
        .join(StudyRow, StudyRow.id == Campaign.study_id)
        .where(StudyRow.name == study.name, Campaign.state != "draft")
        .order_by(Campaign.id)
    ).all()
    nodes: dict[int, list[Node]] = {}
    own = [campaign for campaign in launched if is_about(session, campaign, study, nodes)]
    return own, [campaign for campaign in launched if campaign not in own]


def is_about(
    session: Session, campaign: Campaign, study: StudyRow, known: dict[int, list[Node]] | None = None
) -> bool:
    """Return whether steps of this submission made the outputs that raters see.

    `known`: the nodes of submissions, so that each submission is read once.
    """
    assert campaign.study_id is not None  # of ratings made elsewhere, which are of no study
    if campaign.study_id == study.id:
        return True
    read: dict[int, list[Node]] = {} if known is None else known
    for number in (campaign.study_id, study.id):
        if number not in read:
            read[number] = study_nodes(session, number, *OUTPUTS)
    return rated_steps(campaign, read[campaign.study_id]) == rated_steps(campaign, read[study.id])


def rated_steps(campaign: Campaign, nodes: Sequence[Node]) -> dict[str, str | None]:
    """Return, by system, the key of the step whose outputs a campaign of this submission would rate.

    The key follows from the test set and everything that the outputs depend on.
    """
    first = {
        system: first_node(nodes, system=system, test_set=campaign.test_set) for system in campaign.systems
    }
    return {system: None if node is None else node.key for system, node in first.items()}
