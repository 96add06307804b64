"""What a study and its files give reason to doubt before anything has run: warnings, not mistakes.

Only what is certain within a good margin is said: numbers of updates are estimated from the text, and
generously.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from creamtea.document.mistakes import KeyPath, dotted
from creamtea.document.warning import PlaceOf, StudyWarning
from creamtea.methods.corpora import Corpus, FilesCorpus, WordCorpus
from creamtea.methods.test_sets import FilesTestSet, OfFile, SyntheticTestSet, WordTestSet
from creamtea.methods.texts import Filters, Subwords, TextPair
from creamtea.methods.training import Training
from creamtea.stats.paired import SIGNIFICANT
from creamtea.steps.systems import DECODE, OUTPUTS
from creamtea.study.checks.word_warnings import WordFiles, unseen_symbols, untrained_languages
from creamtea.study.plan.model import Plan
from creamtea.study.spec import Study
from creamtea.study.survey import Survey, lines_of, survey
from creamtea.wording import counted, option
from creamtea.words import any_unspaced, count_words, normalise

MIN_UPDATES = 500  # with fewer, a model of any size has hardly begun to learn
MIN_WORDS = 30  # of running text for each subword
MARGIN = 1.3  # on the estimated number of updates
SURVEYED = 100_000  # pairs of a text


def warnings_of(
    study: Study, planned: Plan, root: Path | None, place_of: PlaceOf = dotted
) -> list[StudyWarning]:
    """All of them. `root`: the folder of the study's files, which the plan has found in order; with None
    nothing is said that needs them."""
    texts = _Texts(root, any_unspaced(study.languages.source, study.languages.target), WordFiles(root))
    return [
        *_same_systems(planned, place_of),
        *_few_samples(study, place_of),
        *_few_to_time(study, root, place_of),
        *untrained_languages(study, place_of),
        *unseen_symbols(study, texts.words, place_of),
        *_outside(study, planned, root, place_of),
        *_nothing_left(study, root, place_of),
        *_subwords(study, texts, place_of),
        *_updates(study, texts, place_of),
        *_seen_in_training(study, texts, place_of),
    ]


@dataclass
class _Texts:
    """What the files of a corpus are like; each is read once."""

    root: Path | None
    unspaced: bool
    words: WordFiles
    known: dict[tuple[str, str], tuple[Survey, float]] = field(default_factory=dict)

    def of(self, corpus: object, repeated: bool = True) -> list[tuple[Survey, float]]:
        """A survey of the first pairs of each text, and how many times as much there is of it, with its
        repetitions; none for what is not in files."""
        if self.root is None or not isinstance(corpus, FilesCorpus):
            return []
        return [self._survey(self.root, text, text.repeat if repeated else 1) for text in corpus.train]

    def amount(self, corpus: Corpus, subwords: Subwords) -> tuple[float, float]:
        """Training pairs and their target subwords, with repetitions; 0 for what is not known."""
        if isinstance(corpus, WordCorpus):
            return self.words.amount(corpus, subwords)
        texts = self.of(corpus)
        pairs = sum(times * text.pairs for text, times in texts)
        if not subwords.joint:
            return pairs, 0
        return pairs, sum(times * text.tokens(subwords.vocabulary) for text, times in texts)

    def _survey(self, root: Path, text: TextPair, repeat: int) -> tuple[Survey, float]:
        names = (text.source, text.target)
        if names not in self.known:
            source, target = (root / name for name in names)
            result = survey(source, target, limit=SURVEYED, unspaced=self.unspaced)
            lines = result.pairs if result.pairs < SURVEYED else sum(1 for _ in lines_of(source))
            self.known[names] = result, lines / result.pairs
        result, times = self.known[names]
        return result, times * repeat


def _same_systems(planned: Plan, place_of: PlaceOf) -> Iterator[StudyWarning]:
    alike: dict[str, dict[str, None]] = {}
    for node in planned.nodes:
        if node.node.partition("/")[0] in (DECODE.name, OUTPUTS.name) and "system" in node.labels:
            alike.setdefault(node.key, {})[node.labels["system"]] = None
    for systems in dict.fromkeys(tuple(names) for names in alike.values() if len(names) > 1):
        yield StudyWarning(
            "same-systems",
            place_of(("systems", systems[-1])),
            f"{' and '.join(systems)} are the same: one model that translates in one way, or one file",
            "Change one of them, or leave it out: their outputs will be the same.",
        )


def _few_samples(study: Study, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """The smallest p-value of n samples is 1 / (n + 1), which Holm's correction multiplies."""
    comparisons = max(
        sum(len(study.comparisons(system)) for system in study.systems_on(test_set))
        for test_set in study.test_sets
    )
    for key in ("samples", "trials"):
        count = getattr(study.significance, key)
        if comparisons / (count + 1) >= SIGNIFICANT:
            yield StudyWarning(
                "few-samples",
                place_of(("significance", key)),
                f"{counted(comparisons, 'comparison')} of one test set: after Holm's correction no p-value "
                f"of {count:,} {key} is below {SIGNIFICANT}, so that no difference can be marked",
                f"Raise {key} to {math.ceil(comparisons / SIGNIFICANT):,} or more, or compare fewer systems.",
            )


def _few_to_time(study: Study, root: Path | None, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """A test set with fewer sentences than the latency run is to time."""
    if study.latency is None:
        return
    name, asked, batch = study.latency.test_set, study.latency.sentences, study.latency.batch_size
    available = _max_segments(study.test_sets[name], root)
    if available is None or available >= asked:
        return
    whole = available // batch * batch
    found = f"{name} has {available} sentences: {whole} will be timed, not {asked}"
    if not whole:
        found = f"{name} has {available} sentences, fewer than a batch of {batch}: the latency run will fail"
    keys = "latency.sentences and latency.batch_size" if batch > 1 else "latency.sentences"
    yield StudyWarning(
        "few-to-time",
        place_of(("latency", "sentences")),
        found,
        f"Lower {keys}, or time systems on a larger test set.",
    )


def _max_segments(test_set: Any, root: Path | None) -> int | None:
    """At most so many segments; None where that is not known before the test set is prepared."""
    if isinstance(test_set, SyntheticTestSet):
        return test_set.lines
    if root is None or not isinstance(test_set, OfFile | WordTestSet):
        return None
    files = test_set.named_files() if isinstance(test_set, WordTestSet) else [test_set.source]
    return sum(sum(1 for _ in islice(lines_of(root / name), test_set.limit)) for name in files)


def _outside(study: Study, planned: Plan, root: Path | None, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Files that a copy of the folder would lack."""
    if root is None:
        return
    home = root.resolve()
    places = {path: Path(place) for step in planned.steps for path, place in step.locations.items()}
    outside = {path for path, place in places.items() if not place.resolve().is_relative_to(home)}
    for key, value in _texts_in(study.model_dump(mode="json")):
        if value in outside:
            outside.remove(value)
            yield StudyWarning(
                "outside-data",
                place_of(key),
                f"{value} is outside {home}, the folder of the study's files",
                f"A copy of the folder lacks it. Put it there, or name one around both: {option('data')}.",
            )


def _texts_in(value: Any, key: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict | list):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_in(inner, (*key, part))


def _nothing_left(study: Study, root: Path | None, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Filters that no training pair passes. The first that does ends the search; tokens and escapes that will
    be undone hide what a pair will be."""
    for name, corpus in study.corpora.items():
        if root is None or not isinstance(corpus, FilesCorpus):
            continue
        if any(text.tokenized != "no" for text in corpus.train):
            continue
        sources = (study.test_sets[test_set] for test_set in corpus.filters.held_out)
        held_out = {
            normalise(line)
            for test_set in sources
            if isinstance(test_set, FilesTestSet)
            for line in lines_of(root / test_set.source)
        }
        pairs = (
            pair
            for text in corpus.train
            for pair in zip(lines_of(root / text.source), lines_of(root / text.target), strict=False)
        )
        unspaced = any_unspaced(study.languages.source, study.languages.target)
        passing = (pair for pair in pairs if _passes(corpus.filters, pair, unspaced))
        if all(normalise(source) in held_out for source, _ in passing):
            yield StudyWarning(
                "nothing-left",
                place_of(("corpora", name, "filters")),
                f"no training pair of {name} passes these filters: the study will fail",
                "Raise max_words, max_characters or max_ratio, or hold out other test sets.",
            )


def _passes(filters: Filters, pair: tuple[str, str], unspaced: bool) -> bool:
    if max(map(len, pair)) > filters.max_characters:
        return False
    return filters.drop_reason(*(count_words(normalise(side), unspaced) for side in pair)) is None


def _subwords(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    for corpus, name in sorted(study.subword_texts()):
        subwords, words, pairs, alphabet = study.subwords[name], 0.0, 0.0, 0
        for text, times in texts.of(study.corpora[corpus], repeated=False):
            pairs += times * text.pairs
            alphabet = max(alphabet, text.alphabet)
            words += times * sum(
                side.characters if side.alphabet > 1000 else side.words for side in (text.source, text.target)
            )
        if subwords.joint and pairs > subwords.sample:  # of which the subwords are learnt
            words *= subwords.sample / pairs
        if words and subwords.joint and words < MIN_WORDS * subwords.vocabulary:
            place = place_of(("subwords", name, "vocabulary"))
            yield vocabulary_warning(place, subwords.vocabulary, words, f"words in {corpus}", alphabet)


def least_vocabulary(alphabet: int) -> int:
    """What a text of so many distinct characters needs: each is a subword, and some of several are left."""
    return math.ceil(1.5 * (alphabet + 10) / 100) * 100


def vocabulary_warning(
    place: str, vocabulary: int, count: float, what: str, alphabet: int | None
) -> StudyWarning:
    """Shared with reports, which know the subwords of the encoded text. `alphabet`: its distinct characters;
    no number is advised where they are not known."""
    most = max(200.0, count / (2 * MIN_WORDS))
    power = 10 ** math.floor(math.log10(most))
    fitting = max(step * power for step in (1, 2, 5) if step * power <= most)
    fitting = max(fitting, least_vocabulary(alphabet or 0))
    remedy = f"Try {fitting:,} or so." if fitting < vocabulary else "More text would help."
    if alphabet is None:
        remedy = "Fewer subwords (more than the text has characters) or more text would help."
    return StudyWarning(
        "vocabulary",
        place,
        f"a vocabulary of {vocabulary:,} is large for {count:,.0f} {what}: most subwords are too rare"
        " to learn",
        remedy,
    )


def _updates(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    for name, variant in study.variants.items():
        training = variant.training
        if not variant.subwords:
            continue  # of an imported model: how many subwords the text has is not known
        corpus, subwords = study.corpora[variant.corpus], study.subwords[variant.subwords]
        updates = _expected(training, *texts.amount(corpus, subwords))
        place = ("variants", name, "training")
        about = f"at most about {counted(updates, 'update')}"
        if updates < training.warmup:
            yield warmup_warning(place_of((*place, "warmup")), training, about, updates)
        elif updates < MIN_UPDATES and variant.start_from is None:
            yield few_updates_warning(place_of(place), training, about, updates)


def _expected(training: Training, pairs: float, tokens: float) -> int:
    """At most so many updates; where the text is not known, all that `max_updates` allows."""
    if training.batch_sentences is not None:
        batches = math.ceil(pairs / training.batch_sentences)
    else:
        batches = math.ceil(MARGIN * tokens / training.batch_tokens)
    if training.max_epochs is None or not batches:
        return training.max_updates
    return min(training.max_updates, training.max_epochs * math.ceil(batches / training.accumulate))


def warmup_warning(place: str, training: Training, updates_in_words: str, updates: int) -> StudyWarning:
    shorter = round(updates / 10 / 10) * 10
    remedy = f"Shorten it to a tenth of the updates (about {shorter:,}), or train longer"
    if updates < MIN_UPDATES:
        remedy = "Train longer"
    return StudyWarning(
        "warm-up",
        place,
        f"the warm-up lasts {counted(training.warmup, 'update')} and the training {updates_in_words}: the "
        "learning rate never reaches its peak",
        f"{remedy}, with {_more_updates(training, updates)}.",
    )


def _more_updates(training: Training, updates: int) -> str:
    """How to get more than these, by the limit that they come from."""
    if training.max_epochs is None or updates >= training.max_updates:
        return "more updates (max_updates)"
    batches = "batch_tokens" if training.batch_sentences is None else "batch_sentences"
    return f"smaller batches ({batches}) or more epochs (max_epochs)"


def few_updates_warning(place: str, training: Training, updates_in_words: str, updates: int) -> StudyWarning:
    return StudyWarning(
        "few-updates",
        place,
        f"{updates_in_words}: too few for a model to learn to translate",
        f"Use {_more_updates(training, updates)}: at least {MIN_UPDATES:,} updates, better some thousands.",
    )


def _seen_in_training(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    root = texts.root
    if root is None:
        return
    sentences: dict[str, list[str]] = {}
    for name, test_set in study.test_sets.items():
        if isinstance(test_set, FilesTestSet):
            lines = [normalise(line) for line in lines_of(root / test_set.source)]
            sentences[name] = lines[: test_set.limit]
    for name, corpus in study.corpora.items():
        if not isinstance(corpus, FilesCorpus):
            continue
        checked = {test: lines for test, lines in sentences.items() if test not in corpus.filters.held_out}
        wanted = {line for lines in checked.values() for line in lines if line}
        seen: set[str] = set()
        for text in corpus.train if wanted else ():
            seen.update(line for line in map(normalise, lines_of(root / text.source)) if line in wanted)
        for test, lines in checked.items():
            if count := sum(line in seen for line in lines):
                yield seen_warning(place_of(("test_sets", test)), test, name, count, len(lines))


def seen_warning(
    place: str,
    test_set: str,
    corpus: str,
    seen: int,
    segments: int,
    pairs: int | None = None,
    of_words: bool = False,
) -> StudyWarning:
    """Shared with reports, which also know how many are there with their reference (`pairs`)."""
    held_out = f"Add `filters: {{held_out: [{test_set}]}}` to corpora.{corpus}, which drops them from it."
    taken_out = "Take them out of the files of training words."
    noun = "words" if of_words else "sentences"
    verb = "is" if seen == 1 else "are"
    with_reference = "" if pairs is None else f" ({pairs:,} of them with their reference)"
    return StudyWarning(
        "seen-in-training",
        place,
        f"{seen:,} of {segments:,} source {noun} {verb} in the training text of {corpus}{with_reference}: "
        f"scores {'will be' if pairs is None else 'are'} too high",
        taken_out if of_words else held_out,
    )
