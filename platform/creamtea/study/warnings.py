"""Warnings about a study and its files before anything has run; they are not mistakes.

Warnings leave a wide margin: numbers of updates, for example, are generous estimates from the text.
"""

from __future__ import annotations

import math
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from creamtea.document.mistakes import KeyPath, PlaceOf, StudyWarning, dotted
from creamtea.files import unpacked
from creamtea.methods.corpora import Corpus, FilesCorpus, WordCorpus
from creamtea.methods.test_sets import FilesTestSet, OfFile, SyntheticTestSet, WordTestSet
from creamtea.methods.texts import MAX_CHARACTERS, Subwords, TextPair
from creamtea.methods.training import Training
from creamtea.stats.paired import SIGNIFICANT
from creamtea.steps.systems import DECODE, OUTPUTS
from creamtea.study.data_files import STORED
from creamtea.study.plan import Plan
from creamtea.study.spec import Study
from creamtea.study.survey import (
    Survey,
    WordSurvey,
    in_csv_quotes,
    judged,
    lines_of,
    survey,
    survey_words,
)
from creamtea.wording import counted, option
from creamtea.words import MAX_LINE, any_unspaced, count_words, normalise, without_csv_quotes

MIN_UPDATES = 500  # with fewer, a model of any size has hardly begun to learn
MIN_WORDS = 30  # words of running text per subword
MARGIN = 1.3  # factor on the estimated number of updates
SURVEYED = 100_000  # pairs of a text to survey
# largest share of a test set in development text, and of development text in training text: some sentences
# are common
MAX_SEEN = 0.1
MAX_REPEATED = 0.2  # share of a test set's segments that repeat earlier ones: short answers recur in chats


def warnings_of(
    study: Study, planned: Plan, root: Path | None, place_of: PlaceOf = dotted
) -> list[StudyWarning]:
    """Return all warnings.

    `root`: the folder of the study's files, which the plan has checked. None omits warnings that need the
    files.
    """
    texts = _Texts(study, root)
    return [
        *_same_systems(planned, place_of),
        *_few_samples(study, place_of),
        *_few_to_time(study, root, place_of),
        *long_lines(study, planned, place_of),
        *untrained_languages(study, place_of),
        *unseen_symbols(study, texts, place_of),
        *_files_outside(study, planned, root, place_of),
        *byte_order_marks(study, planned, place_of),
        *_nothing_left(texts, place_of),
        *_odd_pairs(study, texts, place_of),
        *csv_quotes(study, planned, place_of),
        *_repeated_segments(texts, place_of),
        *_references_as_outputs(study, texts, place_of),
        *_large_vocabularies(study, texts, place_of),
        *_few_updates(study, texts, place_of),
        *_seen_in_training(texts, place_of),
        *_seen_in_development(texts, place_of),
    ]


class _Texts:
    """The study's text files, which the plan has checked; none if `root` is None."""

    def __init__(self, study: Study, root: Path | None) -> None:
        self.root = root or Path()
        self.known = root is not None
        self.unspaced = any_unspaced(study.languages.source, study.languages.target)
        self.corpora = {
            name: corpus
            for name, corpus in study.corpora.items()
            if self.known and isinstance(corpus, FilesCorpus)
        }
        self.test_sets = {
            name: test_set
            for name, test_set in study.test_sets.items()
            if self.known and isinstance(test_set, FilesTestSet)
        }
        # each text, and each file of words, is read once
        self._surveys: dict[tuple[str, str, str], tuple[Survey, float]] = {}
        self._words: dict[str, WordSurvey] = {}

    def lines(self, path: str, limit: int | None = None) -> Iterator[str]:
        """Yield the first `limit` lines of a file, or all, normalised."""
        return islice(map(normalise, lines_of(self.root / path)), limit)

    def pairs(self, text: TextPair) -> Iterator[tuple[str, str]]:
        source, target = (lines_of(self.root / path, column) for path, column in text.sides())
        return zip(source, target, strict=False)

    def sources(self, text: TextPair) -> Iterator[str]:
        """Yield the source sentences, normalised."""
        path, column = text.sides()[0]
        return map(normalise, lines_of(self.root / path, column))

    def of(self, corpus: Corpus, repeated: bool = True) -> list[tuple[Survey, float]]:
        """Return a survey of each text's first pairs, and the factor from these pairs to the whole text.

        The factor includes repetitions. Returns [] for a corpus that is not in files.
        """
        surveys: list[tuple[Survey, float]] = []
        for text in corpus.train if self.corpora and isinstance(corpus, FilesCorpus) else ():
            key = (text.source, text.target, str(text.columns))
            if key not in self._surveys:
                result = survey(self.pairs(text), limit=SURVEYED, unspaced=self.unspaced)
                known = result.pairs < SURVEYED
                lines = result.pairs if known else sum(1 for _ in lines_of(self.root / text.source))
                self._surveys[key] = result, lines / result.pairs
            result, times = self._surveys[key]
            surveys.append((result, times * (text.repeat if repeated else 1)))
        return surveys

    def words(self, corpus: Corpus) -> list[tuple[WordSurvey, int]]:
        """Return the survey of each file of training words, and its repetitions; [] if unknown."""
        if not self.known or not isinstance(corpus, WordCorpus) or corpus.lines is None:
            return []
        for file in corpus.training_files():
            if file.path not in self._words:
                self._words[file.path] = survey_words(self.root / file.path, corpus.lines)
        return [(self._words[file.path], file.repeat) for file in corpus.training_files()]

    def amount(self, corpus: Corpus, subwords: Subwords) -> tuple[float, float]:
        """Return the numbers of training pairs and target subwords, with repetitions; 0 if unknown.

        Made-up words count too; they are assumed to be as long as the others.
        """
        if isinstance(corpus, WordCorpus):
            files = self.words(corpus)
            read = sum(times * file.words for file, times in files)
            if not read:
                return 0, 0
            words = read + corpus.made_up()
            symbols = sum(times * file.units[subwords.target] for file, times in files)
            return words, 0 if subwords.joint else symbols * words / read
        texts = self.of(corpus)
        pairs = sum(times * text.pairs for text, times in texts)
        if not subwords.joint:
            return pairs, 0
        return pairs, sum(times * text.tokens(subwords.vocabulary) for text, times in texts)


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
    """Warn if no difference can become significant.

    The smallest p-value of n samples is 1 / (n + 1), which Holm's correction multiplies.
    """
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
    """Warn about a test set with fewer sentences than the latency run should time."""
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


def long_lines(study: Study, planned: Plan, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn of lines that are whole texts: a model's work grows with the square of their length.

    Training text has a filter for long lines; other texts have none.
    """
    places = _places(planned)
    unspaced = any_unspaced(study.languages.source, study.languages.target)
    for key, path in _texts_in(study.model_dump(mode="json")):
        work, limit = "", None
        match key:
            case ("corpora", _, "dev", "source" | "target"):
                work = "each validation may read it"
            case ("test_sets", str(name), "source"):
                limit = getattr(study.test_sets[name], "limit", None)
                if any(study.systems[system].runs for system in study.systems_on(name)):
                    work = "each system may translate it"
        if path not in places or not places[path].is_file() or not (work or key[0] in STORED):
            continue
        words = characters = (0, 0)  # most on a line, and minus the line's number
        for number, line in enumerate(islice(map(normalise, lines_of(places[path])), limit), start=1):
            words = max(words, (count_words(line, unspaced) if work else 0, -number))
            characters = max(characters, (len(line), -number))
        if words[0] > MAX_LINE:
            amount, line_number = counted(words[0], "word"), -words[1]
        elif characters[0] > MAX_CHARACTERS:
            amount, line_number = counted(characters[0], "character"), -characters[1]
        else:
            continue
        why = f"{work} for many minutes, without progress to be seen" if work else "hardly a single segment"
        found = f"line {line_number:,} of {path} has {amount}: {why}"
        yield StudyWarning("long-line", place_of(key), found, "Write one sentence per line.")


def _places(planned: Plan) -> dict[str, Path]:
    """Return where the files are, by their paths in the study."""
    return {path: Path(place) for step in planned.steps for path, place in step.locations.items()}


def _max_segments(test_set: Any, root: Path | None) -> int | None:
    """Return the largest number of segments that a test set can have; None if not yet known."""
    if isinstance(test_set, SyntheticTestSet):
        return test_set.lines
    if root is None or not isinstance(test_set, OfFile | WordTestSet):
        return None
    files = test_set.named_files() if isinstance(test_set, WordTestSet) else [test_set.source]
    return sum(sum(1 for _ in islice(lines_of(root / name), test_set.limit)) for name in files)


def _files_outside(
    study: Study, planned: Plan, root: Path | None, place_of: PlaceOf
) -> Iterator[StudyWarning]:
    """Warn about files that a copy of the folder would lack."""
    if root is None:
        return
    home = root.resolve()
    places = _places(planned)
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


def byte_order_marks(study: Study, planned: Plan, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about files whose byte-order mark other programs score as text."""
    places = _places(planned)
    for key, value in _texts_in(study.model_dump(mode="json")):
        if key[0] in STORED and value in places and places[value].is_file():  # models are folders
            with places[value].open("rb") as file:
                marked = unpacked(file).read(len(BOM_UTF8)) == BOM_UTF8
            if marked:
                place = place_of(key)  # of `creamtea compare`, the file itself
                name = "it" if place.endswith(Path(value).name) else value
                yield StudyWarning(
                    "byte-order-mark",
                    place,
                    f"{name} begins with a byte-order mark, which is not read as text: sacreBLEU's command "
                    "scores it",
                    "Save the file as UTF-8 without the mark.",
                )


def _texts_in(value: Any, key: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict | list):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_in(inner, (*key, part))


def _nothing_left(texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about filters that no training pair passes.

    The first pair that passes ends the search. Skips texts with tokens or escapes to undo: their final pairs
    are not known yet.
    """
    for name, corpus in texts.corpora.items():
        if any(text.tokenized != "no" for text in corpus.train):
            continue
        filters = corpus.filters
        sources = (texts.lines(texts.test_sets[test].source) for test in filters.held_out)
        held_out = frozenset(chain.from_iterable(sources))
        pairs = chain.from_iterable(map(texts.pairs, corpus.train))
        dropped: set[str | None] = set()
        for _, _, reason in judged(pairs, texts.unspaced, held_out, filters):
            dropped.add(reason)
            if reason is None:
                break
        if dropped == {"empty"}:
            yield StudyWarning(
                "nothing-left",
                place_of(("corpora", name, "train")),
                f"every training pair of {name} has an empty side: the study will fail",
                "Name the files, or the columns, that hold the text and its translation.",
            )
        elif None not in dropped:
            yield StudyWarning(
                "nothing-left",
                place_of(("corpora", name, "filters")),
                f"no training pair of {name} passes these filters: the study will fail",
                "Raise max_words, max_characters or max_ratio, or hold out other test sets.",
            )


def _odd_pairs(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about texts that copy their source, and about cells of a CSV writer."""
    for name, corpus in study.corpora.items():
        for number, (text, _) in enumerate(texts.of(corpus)):
            yield from odd_pairs_warnings(place_of(("corpora", name, "train", number)), text)
    measured: list[tuple[KeyPath, Iterator[tuple[str, str]]]] = [
        (("corpora", name, "dev"), texts.pairs(corpus.dev)) for name, corpus in texts.corpora.items()
    ]
    for name, test_set in texts.test_sets.items():
        if test_set.target is not None:
            sides = (texts.lines(path, test_set.limit) for path in (test_set.source, test_set.target))
            measured.append((("test_sets", name), zip(*sides, strict=False)))
    for place, lines in measured:
        pairs = [(normalise(source), normalise(target)) for source, target in lines]
        same = sum(source == target != "" for source, target in pairs)
        if 2 * same > len(pairs):
            yield StudyWarning(
                "same-sides",
                place_of(place),
                f"{same:,} of {counted(len(pairs), 'pair')} have the same text on both sides: scores say "
                "how much a system copies",
                "Check that the target file is the translation.",
            )
        if place[0] not in STORED:
            yield from _quoted(place_of(place), sum(map(in_csv_quotes, pairs)), len(pairs), "pair")


def odd_pairs_warnings(place: str, text: Survey) -> Iterator[StudyWarning]:
    """Warn of a training text if most pairs have the same text on both sides, or some are in CSV quotes."""
    if text.same > text.pairs / 2:
        yield StudyWarning(
            "same-sides",
            place,
            f"{text.same:,} of {counted(text.pairs, 'pair')} have the same text on both sides: a model "
            "learns to copy from these",
            "Check that the target file is the translation.",
        )
    yield from _quoted(place, text.quoted, text.pairs, "pair")


def csv_quotes(study: Study, planned: Plan, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about files of test sets and outputs with lines in CSV quotes."""
    places = _places(planned)
    for key, path in _texts_in(study.model_dump(mode="json")):
        if key[0] in STORED and path in places and places[path].is_file():
            test_set = study.test_sets.get(str(key[1] if key[0] == "test_sets" else key[-1]))
            lines = islice(lines_of(places[path]), getattr(test_set, "limit", None))
            quoted = [without_csv_quotes(line) != line for line in lines]
            yield from _quoted(place_of(key), sum(quoted), len(quoted), "line")


def _quoted(place: str, quoted: int, read: int, noun: str) -> Iterator[StudyWarning]:
    if quoted:
        first = "the first " if noun == "pair" and read == SURVEYED else ""
        have = "has" if quoted == 1 else "have"
        yield StudyWarning(
            "csv-quotes",
            place,
            f"{quoted:,} of {first}{counted(read, noun)} {have} a text as CSV writes it, in quotes and with "
            'quotes doubled ("He said ""yes""."): these quotes are read as text',
            "Write the texts without them.",
        )


def _repeated_segments(texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn of test sets whose segments repeat: intervals and tests take them for independent."""
    for name, test_set in texts.test_sets.items():
        paths = [path for path in (test_set.source, test_set.target) if path is not None]
        segments = list(zip(*(texts.lines(path, test_set.limit) for path in paths), strict=False))
        repeated = len(segments) - len(set(segments))
        if repeated > MAX_REPEATED * len(segments):
            yield StudyWarning(
                "repeated-segments",
                place_of(("test_sets", name)),
                f"{repeated:,} of {counted(len(segments), 'segment')} repeat an earlier one: intervals are "
                "too narrow and p-values too small, since each segment counts as a new observation",
                "Keep one of each.",
            )


def _references_as_outputs(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    for name, system in study.systems.items():
        for test_set, outputs in system.outputs.items():
            files = texts.test_sets.get(test_set)
            references = [files.target, *files.more_references] if files is not None and files.target else []
            for number, reference in enumerate(references, start=1):
                assert files is not None
                sides = (texts.lines(path, files.limit) for path in (outputs, reference))
                if all(output == line for output, line in zip_longest(*sides)):
                    yield StudyWarning(
                        "reference-as-output",
                        place_of(("systems", name, "outputs", test_set)),
                        f"{outputs} is the text of reference {number} of {test_set}: metrics score it "
                        "against itself",
                        f"Write `reference: {number}` instead of `outputs` if it is a human reference.",
                    )


def _large_vocabularies(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    for corpus, name in sorted(study.subword_texts()):
        subwords, words, pairs, alphabet, distinct = study.subwords[name], 0.0, 0.0, 0, 0
        for text, times in texts.of(study.corpora[corpus], repeated=False):
            pairs += times * text.pairs
            alphabet = max(alphabet, text.alphabet)
            distinct = max(distinct, text.source.vocabulary + text.target.vocabulary)
            words += times * sum(
                side.characters if side.alphabet > 1000 else side.words for side in (text.source, text.target)
            )
        if subwords.joint and pairs > subwords.sample:  # the subwords are learnt from a sample
            words *= subwords.sample / pairs
        if words and subwords.joint and words < MIN_WORDS * subwords.vocabulary:
            place = place_of(("subwords", name, "vocabulary"))
            what = f"words in {corpus}"
            yield vocabulary_warning(place, subwords.vocabulary, words, what, alphabet, distinct)


def least_vocabulary(alphabet: int) -> int:
    """Return the smallest vocabulary for an alphabet: each character, and some longer subwords."""
    return math.ceil(1.5 * (alphabet + 10) / 100) * 100


def vocabulary_warning(
    place: str, vocabulary: int, count: float, what: str, alphabet: int | None, distinct: float = math.inf
) -> StudyWarning:
    """Return the warning about a vocabulary that is too large for a text; reports use it too.

    `alphabet`: distinct characters of the text; None recommends no size. `distinct`: distinct words of the
    text. If they are few they limit the recommended size, because no subword is longer than a word.
    """
    most = max(200.0, count / (2 * MIN_WORDS))
    power = 10 ** math.floor(math.log10(most))
    fitting = max(step * power for step in (1, 2, 5) if step * power <= most)
    fitting = max(fitting, least_vocabulary(alphabet or 0))
    fitting = int(min(fitting, (alphabet or 0) + max(10, distinct)))
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


def _few_updates(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    for name, variant in study.variants.items():
        training = variant.training
        if not variant.subwords:
            continue  # an imported model: the number of subwords in the text is unknown
        corpus, subwords = study.corpora[variant.corpus], study.subwords[variant.subwords]
        updates = _expected_updates(training, *texts.amount(corpus, subwords))
        place = ("variants", name, "training")
        about = f"at most about {counted(updates, 'update')}"
        if updates < training.warmup:
            yield warmup_warning(place_of((*place, "warmup")), training, about, updates)
        elif updates < MIN_UPDATES and variant.start_from is None:
            yield few_updates_warning(place_of(place), training, about, updates)


def _expected_updates(training: Training, pairs: float, tokens: float) -> int:
    """Return an upper estimate of a training's updates; `max_updates` if the text is not known."""
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
    """Say how to get more updates, depending on the limit that stops the training."""
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


def _seen_in_training(texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    sentences = {
        name: list(texts.lines(test_set.source, test_set.limit)) for name, test_set in texts.test_sets.items()
    }
    for name, corpus in texts.corpora.items():
        checked = {test: lines for test, lines in sentences.items() if test not in corpus.filters.held_out}
        development = [line for line in texts.sources(corpus.dev) if line]
        wanted = {line for lines in (development, *checked.values()) for line in lines if line}
        seen: set[str] = set()
        for text in corpus.train if wanted else ():
            seen.update(line for line in texts.sources(text) if line in wanted)
        for test, lines in checked.items():
            if count := sum(line in seen for line in lines):
                yield seen_warning(place_of(("test_sets", test)), test, name, count, len(lines))
        count = sum(line in seen for line in development)
        if warning := development_warning(place_of(("corpora", name, "dev")), count, len(development)):
            yield warning


def _seen_in_development(texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn if more than a tenth of a test set is in development text, which chooses the checkpoint."""
    for corpus_name, corpus in texts.corpora.items():
        development = set(texts.sources(corpus.dev)) - {""}
        for name, test_set in texts.test_sets.items():
            lines = list(texts.lines(test_set.source, test_set.limit))
            seen = sum(line in development for line in lines)
            if seen > MAX_SEEN * len(lines):
                yield StudyWarning(
                    "seen-in-development",
                    place_of(("test_sets", name)),
                    f"{seen:,} of {len(lines):,} source sentences are in the development text of "
                    f"{corpus_name}, which chooses the checkpoint: scores will be too high",
                    "Take other sentences for one of the two.",
                )


def development_warning(place: str, seen: int, sentences: int, noun: str = "sentence") -> StudyWarning | None:
    """Warn if more than a tenth of the development text is in the training text; otherwise return None."""
    if seen <= MAX_SEEN * sentences:
        return None
    return StudyWarning(
        "development-in-training",
        place,
        f"{seen:,} of {sentences:,} source {noun}s of the development text are in the training text: a "
        "training that has learnt them by heart looks good, so that the wrong checkpoint may be chosen",
        f"Take other {noun}s as development text.",
    )


def seen_warning(
    place: str,
    test_set: str,
    corpus: str,
    seen: int,
    segments: int,
    pairs: int | None = None,
    of_words: bool = False,
) -> StudyWarning:
    """Return the warning about test sentences in the training text.

    Reports use it too; they also know how many occur with their reference (`pairs`).
    """
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


# ---------------------------------------------------------------- studies of words

MAX_NAMED = 10  # letters, or tags, to list in a warning


def untrained_languages(study: Study, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about words of languages that a model has not seen."""
    warned = set()
    for system, spec in study.systems.items():
        trained = _trained_languages(study, spec.variant) if spec.variant else set()
        for name in study.test_sets_of(system):
            test_set = study.test_sets[name]
            if not trained or not isinstance(test_set, WordTestSet):
                continue
            lacking = [language for language in test_set.tested_languages() if language not in trained]
            if lacking and (name, *lacking) not in warned:
                warned.add((name, *lacking))
                yield StudyWarning(
                    "untrained-languages",
                    place_of(("test_sets", name)),
                    f"{', '.join(lacking)}: system {system} is not trained on words of them",
                    "Take them out of the test set, or add their words to the corpus.",
                )


def _trained_languages(study: Study, variant: str) -> set[str]:
    """Return the languages of the words that a variant and its predecessors are trained on."""
    spec = study.variants[variant]
    corpus = study.corpora[spec.corpus]
    before = _trained_languages(study, spec.start_from) if isinstance(spec.start_from, str) else set()
    files = corpus.training_files() if isinstance(corpus, WordCorpus) else []
    return before | {file.language for file in files}


def unseen_symbols(study: Study, texts: _Texts, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Warn about letters and tags that no training word has: a model has no symbol for them."""
    known = set()  # pairs of test set and corpus that have been compared
    for system, spec in study.systems.items():
        root = study.variants[study.root_of(spec.variant)] if spec.variant else None
        if root is None or not root.subwords or study.subwords[root.subwords].joint:
            continue
        training = texts.words(study.corpora[root.corpus])
        for name in study.test_sets_of(system) if training else ():
            test_set = study.test_sets[name]
            if (name, root.corpus) in known or not isinstance(test_set, WordTestSet):
                continue
            known.add((name, root.corpus))
            unseen, concerned, words = _unseen(texts, test_set, [survey for survey, _ in training])
            if concerned:
                yield unseen_warning(place_of(("test_sets", name)), root.corpus, unseen, concerned, words)


def unseen_warning(
    place: str, corpus: str, unseen: Mapping[str, Iterable[str]], concerned: int, words: int
) -> StudyWarning:
    """Return the warning about symbols that no training word has; reports use it too.

    `unseen`: the symbols by noun ("letters", "tags").
    """
    have = "has" if concerned == 1 else "have"
    named = [f"{noun} ({_listed(set(symbols))})" for noun, symbols in unseen.items() if symbols]
    return StudyWarning(
        "unseen-symbols",
        place,
        f"{concerned:,} of {words:,} words {have} {' and '.join(named)} that no "
        f"training word of {corpus} has: models that are trained on it read them all as one unknown symbol",
        "Correct them in the test set, or add words with them to the corpus.",
    )


def _unseen(
    texts: _Texts, test_set: WordTestSet, training: list[WordSurvey]
) -> tuple[dict[str, set[str]], int, int]:
    """Return the symbols that only test words have, the number of such words, and of all words."""
    letters, tags, concerned, words = set[str](), set[str](), 0, 0
    seen_letters = frozenset().union(*(survey.letters for survey in training))
    seen_tags = frozenset().union(*(survey.tags for survey in training))
    if test_set.lines is None:  # the format of its lines is unknown
        return {}, 0, 0
    for path in test_set.named_files():
        for line in map(test_set.lines.read, islice(lines_of(texts.root / path), test_set.limit)):
            new_letters, new_tags = {*line.word} - seen_letters, {*line.tags} - seen_tags
            letters |= new_letters
            tags |= new_tags
            concerned += bool(new_letters or new_tags)
            words += 1
    return {"letters": letters, "tags": tags}, concerned, words


def _listed(symbols: set[str]) -> str:
    """List the first symbols. A combining mark gets a circle, else it would join the character before it."""
    shown = [
        "blank" if symbol == " " else f"◌{symbol}" if unicodedata.category(symbol[0])[0] == "M" else symbol
        for symbol in sorted(symbols)[:MAX_NAMED]
    ]
    more = f", and {len(symbols) - MAX_NAMED:,} more" if len(symbols) > MAX_NAMED else ""
    return ", ".join(shown) + more
