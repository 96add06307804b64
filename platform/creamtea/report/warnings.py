"""Warn about results that give reason to doubt, although every step has succeeded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from creamtea.document.mistakes import StudyWarning
from creamtea.methods.analysis import EMPTY, LENGTH
from creamtea.methods.corpora import WordCorpus
from creamtea.methods.searches import Beam, Exact, Search
from creamtea.methods.training import Training
from creamtea.report import text
from creamtea.report.cells import NO_MARK, Measured, StudyResults, near_zero, unfit_bleu
from creamtea.report.figures import SystemsOn
from creamtea.store.queries import CurvePoint
from creamtea.store.tables import Hypothesis
from creamtea.study.spec import Study
from creamtea.study.warnings import (
    MIN_UPDATES,
    development_warning,
    few_updates_warning,
    seen_warning,
    unseen_warning,
    vocabulary_warning,
    warmup_warning,
)
from creamtea.study.warnings import MIN_WORDS as MIN_SUBWORDS
from creamtea.wording import counted

EMPTY_OUTPUTS = 0.01  # a larger share of empty outputs gives a warning
CUT_OUTPUTS = 0.01  # likewise of outputs cut at the length limit
MIN_LENGTH, MAX_LENGTH = 0.9, 1.1  # times the references' length
STILL_IMPROVING = 0.01  # relative gain of the last validation over the best before


def result_warnings(
    session: Session, results: StudyResults, tables: Sequence[SystemsOn]
) -> tuple[StudyWarning, ...]:
    """Return all warnings; steps that have not run are skipped."""
    return (
        *_seen_in_training(results),
        *_unseen_symbols(results),
        *_vocabularies(results),
        *_together(_trainings(results)),
        *_together(warning for systems in tables for warning in _scores(results, systems)),
        *_together(warning for systems in tables for warning in _empty_outputs(results, systems)),
        *_together(warning for systems in tables for warning in _cut_outputs(results, systems)),
        *_together(warning for systems in tables for warning in _lengths(results, systems)),
        *(warning for systems in tables for warning in _same_outputs(session, results, systems.test_set)),
    )


def _together(warnings: Iterable[StudyWarning]) -> Iterator[StudyWarning]:
    """Join warnings that say the same of several places, at the place of the first."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for warning in warnings:
        places.setdefault((warning.kind, warning.found, warning.remedy), []).append(warning.place)
    for (kind, problem, remedy), named in places.items():
        yield StudyWarning(kind, "; ".join(named), problem, remedy)


# ---------------------------------------------------------------- texts and trainings


def _seen_in_training(results: StudyResults) -> Iterator[StudyWarning]:
    """Warn of test and development text in the training text, by the step's counts: files may be gone."""
    for step in results.of("overlap"):
        corpus = str(step.node.labels.get("corpus"))
        words = isinstance(results.spec.corpora.get(corpus), WordCorpus)
        for position, test_set in enumerate(step.node.labels.get("test_sets", [])):
            seen, pairs = (step.find(name, str(position)) for name in ("seen_sources", "seen_pairs"))
            if seen and pairs and seen.value and pairs.value is not None:
                segments, with_reference = int(seen.detail["segments"]), int(pairs.value)
                yield seen_warning(
                    test_set, test_set, corpus, int(seen.value), segments, with_reference, of_words=words
                )
        if (seen := step.find("seen_sources", "dev")) and seen.value:
            sentences, noun = int(seen.detail["segments"]), "word" if words else "sentence"
            if warning := development_warning(corpus, int(seen.value), sentences, noun):
                yield warning


def _unseen_symbols(results: StudyResults) -> Iterator[StudyWarning]:
    """Warn of test words that a model of symbols has translated."""
    for step in results.of("overlap"):
        corpus = str(step.node.labels.get("corpus"))
        for position, test_set in enumerate(step.node.labels.get("test_sets", [])):
            unseen = step.find("unseen", str(position))
            if unseen and unseen.value and _reads_symbols(results.spec, test_set, corpus):
                symbols = {noun: unseen.detail[noun] for noun in ("languages", "letters", "tags")}
                segments = int(unseen.detail["segments"])
                yield unseen_warning(test_set, corpus, symbols, int(unseen.value), segments)


def _reads_symbols(spec: Study, test_set: str, corpus: str) -> bool:
    """Return whether a system on the test set has the symbols of the corpus's words as its vocabulary."""
    roots = [
        spec.variants[spec.root_of(system.variant)]
        for name in spec.systems_on(test_set)
        if (system := spec.systems[name]).variant
    ]
    return any(
        root.corpus == corpus and root.subwords and not spec.subwords[root.subwords].joint for root in roots
    )


def _vocabularies(results: StudyResults) -> Iterator[StudyWarning]:
    for encoded in results.of("encode"):
        corpus, name = str(encoded.node.labels.get("corpus")), str(encoded.node.labels.get("subwords"))
        if (corpus, name) not in results.spec.subword_texts():
            continue
        subwords = results.spec.subwords[name]
        tokens = [encoded.find("tokens", f"train.{side}") for side in ("src", "tgt")]
        count = sum(metric.value or 0.0 for metric in tokens if metric is not None)
        if subwords.joint and 0 < count < MIN_SUBWORDS * subwords.vocabulary:
            learnt = results.of("subwords", corpus=corpus, subwords=name)
            characters = [step.node.facts["characters"] for step in learnt if "characters" in step.node.facts]
            alphabet = next(iter(characters), None)  # earlier versions did not count them
            title = f"subwords of {corpus}"
            yield vocabulary_warning(f"subwords {name}", subwords.vocabulary, count, title, alphabet)


def _trainings(results: StudyResults) -> Iterator[StudyWarning]:
    """Yield one warning for all seeds of a variant, with the numbers of the first seed that it concerns."""
    for name, variant in results.spec.variants.items():
        by_kind: dict[str, tuple[StudyWarning, list[str]]] = {}
        for run in results.of("train", variant=name):
            own = _training(run, variant.training, variant.start_from is not None, results)
            for warning in filter(None, (own, _averaged(run, variant.training))):
                by_kind.setdefault(warning.kind, (warning, []))[1].append(str(run.node.labels["seed"]))
        for warning, seeds in by_kind.values():
            place = f"{name}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
            yield StudyWarning(warning.kind, place, warning.found, warning.remedy)


def _training(run: Measured, training: Training, adapts: bool, results: StudyResults) -> StudyWarning | None:
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
    curve = results.points.get(run.node.key, {}).get(f"dev_{training.select_by}", [])
    by_design = training.schedule == "linear"  # the last validation is the best
    if stopped in ("max_epochs", "max_updates") and training.keep == "best" and not by_design:
        gain = _last_gain(curve, higher=training.select_by == "bleu")
        if gain >= STILL_IMPROVING:
            return StudyWarning(
                "still-improving",
                "",
                f"the training stopped at {stopped} after {about}, and its last validation was "
                + (
                    "the first above 0"
                    if gain == math.inf
                    else f"{100 * gain:.0f} % better than the best before"
                ),
                f"Raise {stopped}: training ends by itself when the model no longer improves.",
            )
    return None


def _averaged(run: Measured, training: Training) -> StudyWarning | None:
    """Warn of a model that is the mean of fewer checkpoints than the study asks for."""
    updates = run.node.facts.get("averaged_updates")
    if not updates or len(updates) >= training.average:
        return None
    return StudyWarning(
        "fewer-averaged",
        "",
        f"the model is the mean of {counted(len(updates), 'checkpoint')}, not of {training.average:,}: the "
        "training had no more validations",
        "Validate more often (validate_every), or lower average.",
    )


def _early_end(updates: int, training: Training, adapts: bool) -> StudyWarning | None:
    """Warn if patience ended a training before it began to learn.

    This includes schedules that let the learning rate fall to 0: most of the gain comes at their end.
    """
    if updates < training.warmup:
        when = f", before the warm-up of {training.warmup:,} had ended"
    elif training.schedule == "linear":
        when = f" of {training.max_updates:,}, before the learning rate had fallen to 0 (schedule: linear)"
    elif updates < MIN_UPDATES and not adapts:
        when = ": too few for a model to learn to translate"
    else:
        return None
    return StudyWarning(
        "early-end",
        "",
        f"patience ended the training after {counted(updates, 'update')}{when}",
        "Raise patience, or validate less often (validate_every).",
    )


def _last_gain(curve: Sequence[CurvePoint], higher: bool) -> float:
    """Return by how much the last point is better than the best before, relative to that one.

    0 for a single point, ∞ if the best before is 0.
    """
    if len(curve) < 2:
        return 0.0
    sign = 1.0 if higher else -1.0
    best = max(sign * point.y for point in curve[:-1])
    gain = sign * curve[-1].y - best
    return gain / abs(best) if best else math.copysign(math.inf, gain) if gain else 0.0


# ---------------------------------------------------------------- scores and outputs


def _scores(results: StudyResults, systems: SystemsOn) -> Iterator[StudyWarning]:
    for name, reason in unfit_bleu(results, systems.test_set).items():
        yield StudyWarning(
            "unfit-metric",
            f"{name} on {systems.test_set}",
            f"BLEU says little about this system: {reason}",
            "Write outputs and references in the same way, compare by chrF, or choose another tokenizer "
            "(`tokenize` of BLEU).",
        )
    low = near_zero(results, systems.test_set)
    trained = {name for name in low if results.spec.systems[name].variant}
    learning = "Look at their outputs and learning curves before comparing; train longer or on more text."
    aligned = "Look at their outputs: are they in the target language, and in the order of the source?"
    for names, remedy in ((trained, learning), (low.keys() - trained, aligned)):
        listed = ", ".join(f"{name} {value:.1f}" for name, value in low.items() if name in names)
        if listed:
            yield StudyWarning(
                "near-zero",
                systems.test_set,
                f"BLEU is near zero ({listed}): these systems translate next to nothing",
                remedy,
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
                f"the difference in {', '.join(marked)} would be significant, but both systems are near "
                "zero: it is not marked",
                "Which is better cannot be said until they translate.",
            )


def _empty_outputs(results: StudyResults, systems: SystemsOn) -> Iterator[StudyWarning]:
    """Warn of a beam that prefers the empty string (Stahlberg and Byrne 2019)."""
    for row in systems.table.rows:
        search, share = results.spec.systems[row.name].search, row.cells[EMPTY.key].value
        if not isinstance(search, Beam) or search.length_normalization or share is None:
            continue
        runs = results.outputs(row.name, systems.test_set)
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


def _cut_outputs(results: StudyResults, systems: SystemsOn) -> Iterator[StudyWarning]:
    """Warn of outputs without an end, which no column counts."""
    for row in systems.table.rows:
        runs = results.outputs(row.name, systems.test_set)
        shares = [cut.value or 0.0 for run in runs if (cut := run.find("truncated"))]
        if shares and (share := fmean(shares)) > CUT_OUTPUTS:
            yield StudyWarning(
                "cut-outputs",
                f"{row.name} on {systems.test_set}",
                f"{100 * share:.1f} % of the outputs were cut at the length limit",
                "Read some of them: a model that repeats itself needs more training. Otherwise raise "
                "max_length_ratio of its search.",
            )


def _lengths(results: StudyResults, systems: SystemsOn) -> Iterator[StudyWarning]:
    """Warn of outputs that say too little or too much."""
    for row in systems.table.rows:
        system = results.spec.systems[row.name]
        remedy = "a model that is not trained long enough leaves out or repeats words."
        if not system.variant:
            remedy = "they may hold more than the translation."
        cell = row.cells.get(LENGTH.key)
        if cell and cell.value is not None and not MIN_LENGTH <= cell.value <= MAX_LENGTH:
            if cell.value < MIN_LENGTH and not system.variant:
                remedy = "they may leave something out."
            if cell.value < MIN_LENGTH and system.runs and _prefers_short(system.search):
                remedy = "a search by the sum of log-probabilities alone prefers short outputs."
            elif cell.value < MIN_LENGTH and system.selection.kind != "full":
                remedy = (
                    "a selection that allows too few subwords leaves words out, and so does short training."
                )
            yield StudyWarning(
                "length",
                f"{row.name} on {systems.test_set}",
                f"outputs have {text.number(cell.value, LENGTH)} times the length of the references",
                f"Read some of them: {remedy}",
            )


def _prefers_short(search: Search) -> bool:
    """Return True if the search does not divide scores by length (Stahlberg and Byrne 2019)."""
    return isinstance(search, Exact) or (isinstance(search, Beam) and not search.length_normalization)


def _same_outputs(session: Session, results: StudyResults, test_set: str) -> Iterator[StudyWarning]:
    groups: list[list[str]] = []
    decodes = {
        name: [run.node.key for run in results.outputs(name, test_set)]
        for name in results.spec.systems_on(test_set)
    }
    # only systems with the same outputs share all scores (or lengths): cheaper to compare than texts
    scores = {
        name: [
            (run.node.labels.get("metric"), metric.name, metric.value)
            for run in results.of("score", system=name, test_set=test_set)
            for metric in run.metrics
            if metric.value is not None
        ]
        for name in decodes
    }
    for step in results.of("agreement", test_set=test_set):
        for place, name in enumerate(step.node.labels["systems"]):
            length = step.find("length_source", str(place))
            if length is not None and length.value is not None:
                scores[name] = scores[name] or [(None, length.name, length.value)]
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


def _equal_texts(session: Session, ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether the decodes have equal texts, one by one; False for a decode without outputs."""
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
