"""What the results of a study give reason to doubt: warnings that no step's success shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from creamtea.document.warning import StudyWarning
from creamtea.methods.analysis import EMPTY, LENGTH
from creamtea.methods.corpora import WordCorpus
from creamtea.methods.searches import Beam
from creamtea.methods.training import Training
from creamtea.report import text
from creamtea.report.cells import Material, Measured
from creamtea.report.figures import SystemsOn
from creamtea.report.scores import NO_MARK, near_zero, unfit_bleu
from creamtea.store.queries import CurvePoint
from creamtea.store.tables import Hypothesis
from creamtea.study.checks.warnings import (
    MIN_UPDATES,
    few_updates_warning,
    seen_warning,
    vocabulary_warning,
    warmup_warning,
)
from creamtea.study.checks.warnings import MIN_WORDS as MIN_SUBWORDS
from creamtea.study.checks.word_warnings import unseen_warning
from creamtea.study.spec import Study
from creamtea.wording import counted

EMPTY_OUTPUTS = 0.01  # share of a system's outputs
MIN_LENGTH, MAX_LENGTH = 0.9, 1.1  # of the references'
STILL_IMPROVING = 0.01  # of the best validation before: what the last one must have gained


def result_warnings(
    session: Session, material: Material, tables: Sequence[SystemsOn]
) -> tuple[StudyWarning, ...]:
    """All of them; steps that have not run are passed over."""
    return (
        *_seen_in_training(material),
        *_unseen_symbols(material),
        *_vocabularies(material),
        *_together(_trainings(material)),
        *_together(warning for systems in tables for warning in _scores(material, systems)),
        *_together(warning for systems in tables for warning in _empty_outputs(material, systems)),
        *_together(warning for systems in tables for warning in _lengths(systems)),
        *(warning for systems in tables for warning in _same_outputs(session, material, systems.test_set)),
    )


def _together(warnings: Iterable[StudyWarning]) -> Iterator[StudyWarning]:
    """Those that say the same of several places as one, at the place of the first."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for warning in warnings:
        places.setdefault((warning.kind, warning.found, warning.remedy), []).append(warning.place)
    for (kind, found, remedy), named in places.items():
        yield StudyWarning(kind, "; ".join(named), found, remedy)


# ---------------------------------------------------------------- texts and trainings


def _seen_in_training(material: Material) -> Iterator[StudyWarning]:
    """As the step has counted: the texts themselves may be gone."""
    for step in material.of("overlap"):
        corpus = str(step.node.labels.get("corpus"))
        words = isinstance(material.spec.corpora.get(corpus), WordCorpus)
        for position, test_set in enumerate(step.node.labels.get("test_sets", [])):
            seen, pairs = (step.find(name, str(position)) for name in ("seen_sources", "seen_pairs"))
            if seen and pairs and seen.value and pairs.value is not None:
                segments, with_reference = int(seen.detail["segments"]), int(pairs.value)
                yield seen_warning(
                    test_set, test_set, corpus, int(seen.value), segments, with_reference, of_words=words
                )


def _unseen_symbols(material: Material) -> Iterator[StudyWarning]:
    """Of test words that a model of symbols has translated."""
    for step in material.of("overlap"):
        corpus = str(step.node.labels.get("corpus"))
        for position, test_set in enumerate(step.node.labels.get("test_sets", [])):
            unseen = step.find("unseen", str(position))
            if unseen and unseen.value and _reads_symbols(material.spec, test_set, corpus):
                found = {noun: unseen.detail[noun] for noun in ("languages", "letters", "tags")}
                segments = int(unseen.detail["segments"])
                yield unseen_warning(test_set, corpus, found, int(unseen.value), segments)


def _reads_symbols(spec: Study, test_set: str, corpus: str) -> bool:
    """Whether a system on a test set has the symbols of this corpus's words as its vocabulary."""
    roots = [
        spec.variants[spec.root_of(system.variant)]
        for name in spec.systems_on(test_set)
        if (system := spec.systems[name]).variant
    ]
    return any(
        root.corpus == corpus and root.subwords and not spec.subwords[root.subwords].joint for root in roots
    )


def _vocabularies(material: Material) -> Iterator[StudyWarning]:
    for encoded in material.of("encode"):
        corpus, name = str(encoded.node.labels.get("corpus")), str(encoded.node.labels.get("subwords"))
        if (corpus, name) not in material.spec.subword_texts():
            continue
        subwords = material.spec.subwords[name]
        tokens = [encoded.find("tokens", f"train.{side}") for side in ("src", "tgt")]
        count = sum(metric.value or 0.0 for metric in tokens if metric is not None)
        if subwords.joint and 0 < count < MIN_SUBWORDS * subwords.vocabulary:
            learnt = material.of("subwords", corpus=corpus, subwords=name)
            characters = [step.node.facts["characters"] for step in learnt if "characters" in step.node.facts]
            alphabet = next(iter(characters), None)  # steps of earlier versions have not counted them
            what = f"subwords of {corpus}"
            yield vocabulary_warning(f"subwords {name}", subwords.vocabulary, count, what, alphabet)


def _trainings(material: Material) -> Iterator[StudyWarning]:
    """One for all seeds of a variant, with the numbers of the first that it concerns."""
    for name, variant in material.spec.variants.items():
        found: dict[str, tuple[StudyWarning, list[str]]] = {}
        for run in material.of("train", variant=name):
            warning = _training(run, variant.training, variant.start_from is not None, material)
            if warning is not None:
                found.setdefault(warning.kind, (warning, []))[1].append(str(run.node.labels["seed"]))
        for warning, seeds in found.values():
            place = f"{name}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
            yield StudyWarning(warning.kind, place, warning.found, warning.remedy)


def _training(run: Measured, training: Training, adapts: bool, material: Material) -> StudyWarning | None:
    metric = run.find("updates")
    if run.node.state != "succeeded" or metric is None or metric.value is None:
        return None
    updates = int(metric.value)
    about = counted(updates, "update")
    stopped = run.node.facts.get("stopped")
    if stopped == "patience":
        return _early_end(updates, training, adapts)
    if updates < training.warmup:
        return warmup_warning("", training, about, updates)
    if updates < MIN_UPDATES and not adapts:
        return few_updates_warning("", training, about, updates)
    curve = material.points.get(run.node.key, {}).get(f"dev_{training.select_by}", [])
    by_design = training.schedule == "linear"  # the last validation is the best
    if stopped in ("max_epochs", "max_updates") and training.keep == "best" and not by_design:
        gain = _last_gain(curve, higher=training.select_by == "bleu")
        if gain >= STILL_IMPROVING:
            return StudyWarning(
                "still-improving",
                "",
                f"the training ended by {stopped} after {about}, and its last validation was "
                + (
                    "the first above 0"
                    if gain == math.inf
                    else f"{100 * gain:.0f} % better than the best before"
                ),
                f"Raise {stopped}: training ends by itself when nothing becomes better.",
            )
    return None


def _early_end(updates: int, training: Training, adapts: bool) -> StudyWarning | None:
    """Patience can end a training that has not begun to learn; and most of the gain of a rate that falls to 0
    comes at its end."""
    if updates < training.warmup:
        found = f", before the warm-up of {training.warmup:,} had ended"
    elif training.schedule == "linear":
        found = f" of {training.max_updates:,}, before the learning rate had fallen to 0 (schedule: linear)"
    elif updates < MIN_UPDATES and not adapts:
        found = ": too few for a model to learn to translate"
    else:
        return None
    return StudyWarning(
        "early-end",
        "",
        f"patience ended the training after {counted(updates, 'update')}{found}",
        "Raise patience, or validate less often (validate_every).",
    )


def _last_gain(curve: Sequence[CurvePoint], higher: bool) -> float:
    """By how much, relative to it, the last point is better than the best before; 0 for a single one, ∞ where
    the best before is 0."""
    if len(curve) < 2:
        return 0.0
    sign = 1.0 if higher else -1.0
    best = max(sign * point.y for point in curve[:-1])
    gain = sign * curve[-1].y - best
    return gain / abs(best) if best else math.copysign(math.inf, gain) if gain else 0.0


# ---------------------------------------------------------------- scores and outputs


def _scores(material: Material, systems: SystemsOn) -> Iterator[StudyWarning]:
    unfit = unfit_bleu(material, systems.test_set)
    for name, reason in unfit.items():
        yield StudyWarning(
            "unfit-metric",
            f"{name} on {systems.test_set}",
            f"BLEU says little of this system: {reason}",
            "Write outputs and references in the same way, or choose another tokenizer (`tokenize` of BLEU).",
        )
    low = {name: value for name, value in near_zero(material, systems.test_set).items() if name not in unfit}
    if low:
        listed = ", ".join(f"{name} {value:.1f}" for name, value in low.items())
        yield StudyWarning(
            "near-zero",
            systems.test_set,
            f"BLEU is near zero ({listed}): these systems translate next to nothing",
            "Look at their outputs and learning curves before any comparison; train longer or on more text.",
        )
    rows = [*systems.table.rows, *(systems.further.rows if systems.further else ())]
    for row in rows:
        columns = {column.key: column.title for column in systems.table.columns}
        marked = [
            columns[key] for key, cell in row.cells.items() if cell.delta and cell.delta.note == NO_MARK
        ]
        if marked:
            yield StudyWarning(
                "mark-without-meaning",
                f"{text.row_name(row)} on {systems.test_set}",
                f"its difference in {', '.join(marked)} would be significant, but both systems are near "
                "zero: it is not marked",
                "Which is better cannot be said until they translate.",
            )


def _empty_outputs(material: Material, systems: SystemsOn) -> Iterator[StudyWarning]:
    """Of a beam that the empty string survives (Stahlberg and Byrne 2019): scores fall with every subword."""
    for row in systems.table.rows:
        search, share = material.spec.systems[row.name].search, row.cells[EMPTY.key].value
        if not isinstance(search, Beam) or search.length_normalization or share is None:
            continue
        runs = material.outputs(row.name, systems.test_set)
        share -= max(
            (blank.value or 0.0 for run in runs if (blank := run.find("blank_sources"))), default=0.0
        )
        if share > EMPTY_OUTPUTS:
            yield StudyWarning(
                "empty-outputs",
                f"{row.name} on {systems.test_set}",
                f"{text.number(share, EMPTY)} % of the outputs are empty, and BLEU and length fall with "
                "each: its beam search prefers them, as scores are not divided by length",
                "Set `length_normalization: 1.0` in its search, or compare with greedy search.",
            )


def _lengths(systems: SystemsOn) -> Iterator[StudyWarning]:
    """Of outputs that say too little or too much."""
    for row in systems.table.rows:
        cell = row.cells.get(LENGTH.key)
        if cell and cell.value is not None and not MIN_LENGTH <= cell.value <= MAX_LENGTH:
            yield StudyWarning(
                "length",
                f"{row.name} on {systems.test_set}",
                f"its outputs have {text.number(cell.value, LENGTH)} times the length of the references",
                "Read some of them: a model that is not trained long enough leaves out or repeats words.",
            )


def _same_outputs(session: Session, material: Material, test_set: str) -> Iterator[StudyWarning]:
    groups: list[list[str]] = []
    decodes = {
        name: [run.node.key for run in material.outputs(name, test_set)]
        for name in material.spec.systems_on(test_set)
    }
    scores = {name: _all_scores(material, name, test_set) for name in decodes}
    for name, keys in decodes.items():
        if not scores[name]:
            continue
        for group in groups:
            other = group[0]
            if scores[other] == scores[name] and _equal_texts(session, decodes[other], keys):
                group.append(name)
                break
        else:
            groups.append([name])
    for group in groups:
        if len(group) > 1:
            yield StudyWarning(
                "same-outputs",
                test_set,
                f"{', '.join(group[:-1])} and {group[-1]} gave the same outputs in every segment",
                "Check that they differ in what you mean to compare.",
            )


def _all_scores(material: Material, system: str, test_set: str) -> list[tuple[object, ...]]:
    """What only systems with the same outputs have in common, and others hardly ever: cheaper than texts."""
    return [
        (run.node.labels.get("metric"), metric.name, metric.value)
        for run in material.of("score", system=system, test_set=test_set)
        for metric in run.metrics
        if metric.value is not None
    ]


def _equal_texts(session: Session, ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Of as many decodes each, compared one by one; decodes without outputs are not."""
    if len(ours) != len(theirs):
        return False
    one, other = aliased(Hypothesis), aliased(Hypothesis)
    for key, other_key in zip(ours, theirs, strict=True):
        pairs = (
            select(func.count())
            .select_from(one)
            .join(other, (other.index == one.index) & (other.step_key == other_key))
            .where(one.step_key == key)
        )
        if not session.scalar(pairs) or session.scalar(pairs.where(one.text != other.text)):
            return False
    return True
