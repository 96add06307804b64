"""`creamtea init`: from two text files to a first study.

It surveys the text, sets lines aside for development and test, chooses settings, times a few updates and
writes the file.

In trainings of days, a small text needs a small joint vocabulary, small batches and much dropout (Sennrich
and Zhang 2019). In minutes of a processor, few layers, which make an update cheap, helped most:
docs/results/data/training.yaml has the experiments with 5,000 to 20,000 pairs. Sizes for more text follow the
studies that ship with creamtea.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shutil
import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from creamtea.document.mistakes import StudyWarning
from creamtea.errors import InputError
from creamtea.languages import ending, known_code
from creamtea.languages import pair as language_pair
from creamtea.methods.texts import LANGUAGE_CODE, MIN_VOCABULARY, Subwords, in_column
from creamtea.study.data_files import UnreadableFile, scan
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
from creamtea.study.survey import Survey, bare, lines_of, survey, usable_pairs
from creamtea.study.warnings import MIN_WORDS, development_warning, least_vocabulary, odd_pairs_warnings
from creamtea.wording import counted
from creamtea.words import any_unspaced, normalise, without_accents

# ---------------------------------------------------------------- settings that fit the text

VOCABULARIES = (200, 500, 1000, 2000, 4000, 8000, 16000, 32000)
UPDATES = 6000  # most updates for small texts
WARMUP = 0.3  # share of the updates


@dataclass(frozen=True)
class Size:
    """A model's size, for texts of fewer than `below` pairs."""

    below: float
    encoder_layers: int
    decoder_layers: int
    width: int
    heads: int
    feed_forward: int
    dropout: float
    learning_rate: float
    batch_tokens: int

    @property
    def architecture(self) -> dict[str, Any]:
        others = ("below", "learning_rate", "batch_tokens")
        return {key: value for key, value in asdict(self).items() if key not in others}


SIZES = (
    Size(50_000, 2, 1, 128, 4, 512, 0.1, 0.003, 512),
    Size(300_000, 4, 4, 256, 4, 1024, 0.2, 0.002, 4096),
    Size(math.inf, 6, 6, 512, 8, 2048, 0.1, 0.001, 4096),
)


@dataclass(frozen=True)
class Recipe:
    size: Size
    vocabulary: int
    character_coverage: float
    warmup: int
    updates: int
    epoch_tokens: int  # target subwords of an epoch, estimated
    epoch_updates: int

    @property
    def epochs(self) -> float:
        return self.updates / self.epoch_updates


def recipe_for(text: Survey, fillable: float = math.inf) -> Recipe:
    """Choose settings from the text alone, so that the same files give the same study anywhere.

    `fillable`: the largest vocabulary that the text can fill, if its few words limit it.
    """
    # The vocabulary grows with the square root of the words, like a text's distinct words (Heaps), so that
    # each subword is seen often. It is never smaller than the characters require.
    words = text.source.words + text.target.words
    wanted = max(1.0, 5.5 * math.sqrt(words))
    fitting = [size for size in VOCABULARIES if MIN_WORDS * size <= words] or VOCABULARIES[:1]
    nearest = min(fitting, key=lambda size: abs(math.log(size / wanted)))
    vocabulary = int(min(max(nearest, least_vocabulary(text.alphabet)), fillable))
    tokens = text.tokens(vocabulary)
    size = next(size for size in SIZES if text.usable < size.below)
    epoch = math.ceil(1.05 * tokens / size.batch_tokens)  # batches are not quite full
    updates = round_to(max(10 * epoch, min(UPDATES, 1000 + 30 * epoch)), 100)
    return Recipe(
        size=size,
        vocabulary=vocabulary,
        character_coverage=0.9995 if text.alphabet > 1000 else 1.0,
        warmup=min(4000, round_to(WARMUP * updates, 50)),
        updates=updates,
        epoch_tokens=round(tokens),
        epoch_updates=epoch,
    )


def filled_vocabulary(recipe: Recipe, pairs: Iterable[tuple[str, str]]) -> int:
    """Return the recipe's vocabulary, or the largest that these pairs can fill if it is smaller.

    Without the workers (SentencePiece), return the recipe's vocabulary unchecked.
    """
    try:
        subwords = importlib.import_module("creamtea_workers.corpora.subwords")
    except ImportError:
        return recipe.vocabulary
    spec = Subwords(kind="bpe", vocabulary=recipe.vocabulary, character_coverage=recipe.character_coverage)
    return cast(int, subwords.filled_vocabulary(chain.from_iterable(zip(*pairs, strict=True)), spec))


def round_to(value: float, step: int) -> int:
    return step * max(1, round(value / step))


# ---------------------------------------------------------------- training time

MAX_CPUS = 4
QUICKER, FAR_QUICKER = 1.15, 3.0  # factor by which fp32 must be faster to be chosen: idle, busy machine
OVERHEAD = 1.5  # for validations and a busier machine


@dataclass(frozen=True)
class Timing:
    """Speeds of a few updates on this machine.

    `speeds`: target subwords per second by `autocast`, medians over rounds; {} if nothing was timed.
    `steady`: True if fp32 was clearly faster in every round, or in none.
    """

    cpus: int
    speeds: dict[str, float]
    busy: bool = False  # other programs used much of the machine during the measurement
    steady: bool = True

    @property
    def autocast(self) -> str:
        """The default, unless the other was clearly faster in every round."""
        return "none" if self.steady and is_quicker(self.speeds, self.busy) else "bf16"

    def minutes(self, recipe: Recipe) -> tuple[float, float] | None:
        """Return minutes for the updates alone, and with overhead; None if nothing was timed."""
        if not self.speeds:
            return None
        whole = recipe.epoch_tokens * recipe.epochs / self.speeds[self.autocast] / 60
        return whole, OVERHEAD * whole


def is_quicker(speeds: Mapping[str, float], busy: bool) -> bool:
    """Return True if fp32 is clearly faster than bf16."""
    return speeds.get("none", 0.0) > (FAR_QUICKER if busy else QUICKER) * speeds.get("bf16", 1.0)


def own_cpus() -> int:
    """Return the number of cores for a training on this machine."""
    return min(MAX_CPUS, os.cpu_count() or 1)


def time_updates(recipe: Recipe, text: Survey) -> Timing:
    """Run a few updates of this shape; no speeds if the workers (torch) are not installed."""
    cpus = own_cpus()
    try:
        trainer: Any = importlib.import_module("creamtea_workers.training.trainer")
    except ImportError:
        return Timing(cpus, {})
    busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    length = recipe.epoch_tokens / max(1, text.usable)
    size = recipe.size
    rounds: dict[str, list[float]] = trainer.tokens_per_second(
        size.architecture, recipe.vocabulary, size.batch_tokens, length, cpus
    )
    pairs = zip(*rounds.values(), strict=True)
    verdicts = {is_quicker(dict(zip(rounds, pair, strict=True)), busy) for pair in pairs}
    speeds = {name: statistics.median(values) for name, values in rounds.items()}
    return Timing(cpus, speeds, busy, steady=len(verdicts) == 1)


def in_words(minutes: tuple[float, float]) -> str:
    """Write a range as "3 to 12 minutes", "2 to 7 hours", "1 to 4 days"."""
    low, high = minutes
    for unit, size in (("days", 2880.0), ("hours", 120.0)):
        if high >= size:
            each = 1440.0 if unit == "days" else 60.0
            return f"{max(1, math.floor(low / each))} to {math.ceil(high / each)} {unit}"
    return f"{max(1, math.floor(low))} to {max(2, math.ceil(high))} minutes"


# ---------------------------------------------------------------- the file


@dataclass(frozen=True)
class Pair:
    """Two line-aligned text files, or columns (from 1) of tab-separated files."""

    source: Path
    target: Path
    columns: tuple[int, int] | None = None

    def sides(self) -> list[tuple[Path, int | None]]:
        return list(zip((self.source, self.target), self.columns or (None, None), strict=True))

    def lines(self) -> Iterator[tuple[str, str]]:
        source, target = (lines_of(path, column) for path, column in self.sides())
        return zip(source, target, strict=False)


@dataclass(frozen=True)
class FirstStudy:
    """The parts of a first study. `root`: the absolute folder that its paths are relative to."""

    name: str
    file: Path
    root: Path
    languages: tuple[str, str]
    read: Pair  # the training text as it was given
    train: Pair
    dev: Pair
    test: Pair
    aside: str  # a comment on the text set aside for development and test; "" if both were given
    text: Survey
    recipe: Recipe
    timing: Timing


def data_option(study: FirstStudy) -> str:
    """Return the --data option that the study's commands need; "" if its text lies beside it."""
    return "" if study.root == study.file.absolute().parent else f" --data {quote(str(study.root))}"


def duration(study: FirstStudy) -> str:
    """Say how long the training will take, and how this was estimated."""
    minutes = study.timing.minutes(study.recipe)
    if minutes is None:
        return "How long training takes is not known: no updates were timed here."
    speed, threads = study.timing.speeds[study.timing.autocast], counted(study.timing.cpus, "thread")
    busy = " Other programs kept it busy just now: without them it is quicker." if study.timing.busy else ""
    return (
        f"Training will take {in_words(minutes)} on this machine, at {speed:,.0f} target subwords per "
        f"second: estimated from a few updates of this shape with {threads}.{busy} Decoding and "
        "scoring take a few minutes more."
    )


LITTLE_TEXT, LONG_SENTENCES = 10_000, 15  # pairs; words


def doubts(study: FirstStudy) -> list[StudyWarning]:
    """Warn about a text that is not a translation, holds the development text, or is too small.

    4,333 pairs of news with 21 words each gave a BLEU of 1.8; 2.4 times as many everyday pairs with six words
    each, 12.9 (docs/results/data/first-studies.yaml).
    """
    words = study.text.source.words / max(1, study.text.pairs)
    warnings = list(odd_pairs_warnings(f"{study.read.source}, {study.read.target}", study.text))
    development = [hash(bare(source)) for source, _ in study.dev.lines() if source.strip()]
    seen = int(np.isin(development, study.text.source.sentences).sum())
    if warning := development_warning(str(study.dev.source), seen, len(development)):
        warnings.append(warning)
    if study.text.usable >= LITTLE_TEXT or words <= LONG_SENTENCES:
        return warnings
    found = (
        f"{study.text.usable:,} pairs are few for sentences of {words:.0f} words on average: small models "
        "learnt next to nothing from 4,333 sentences of news (BLEU 1.8)"
    )
    remedy = "Add text, or take shorter sentences; `creamtea compare` needs no training."
    return [*warnings, StudyWarning("little-text", str(study.train.source), found, remedy)]


def study_text(study: FirstStudy) -> str:
    recipe, text, timing = study.recipe, study.text, study.timing
    size, patience = recipe.size, max(100, round(recipe.epochs) + 1)
    source, target = study.languages
    of_file = f"{quote(str(study.file))}{data_option(study)}"
    coverage = f", character_coverage: {recipe.character_coverage}" * (recipe.character_coverage < 1)
    timing_comment = textwrap.fill(
        duration(study),
        108,  # characters
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    sizes = ", ".join(f"{key}: {value}" for key, value in size.architecture.items())
    return f"""\
# {language_pair(source, target)}: {text.usable:,} pairs to train on. Written by `creamtea init`.
#
#   creamtea validate {of_file}    # shows what would run, mistakes and warnings
#   creamtea run      {of_file}    # runs it and prints the report
#
{timing_comment}
name: {study.name}
description: A first study of {language_pair(source, target)}
languages: {{source: {source}, target: {target}}}

corpora:
  text:
    kind: files
    train:
      - {_files(study, study.train)}
    # Shows how the training goes; chooses the best checkpoint with `keep: best`.{study.aside}
    dev: {_files(study, study.dev)}
    # Training pairs with a sentence of the test set are dropped.
    filters: {{held_out: [test]}}

# {text.source.words:,} and {counted(text.target.words, "word")}: a subword must be seen often to be learnt.
# More text, more subwords: 4,000 for a million words, 16,000 to 32,000 for tens of millions.
subwords:
  joint: {{kind: bpe, vocabulary: {recipe.vocabulary}{coverage}}}

# What is trained. To compare another objective, add a variant such as
#   scones: {{<<: *variant, objective: {{kind: scones, alpha: 0.5}}}}
# and systems that name it.
variants:
  softmax: &variant
    corpus: text
    subwords: joint
    objective: {{kind: softmax, label_smoothing: 0.1}}
    # Less text, smaller models.
    architecture: {{{sizes}}}
    training:
      batch_tokens: {size.batch_tokens} # target subwords: about {recipe.epoch_updates:,} updates an epoch
      schedule: linear # after the warm-up, the learning rate falls to 0 at the end: much is learnt there
      learning_rate: {size.learning_rate} # the peak, at the end of the warm-up
      warmup: {recipe.warmup} # updates; shorten it with max_updates
      max_updates: {recipe.updates} # about {recipe.epochs:.0f} epochs
      patience: {patience} # validations, one an epoch: more than there are: training reaches its end
      keep: last # on little text BLEU still rises when the development loss has begun to
      autocast: {timing.autocast} # {_autocast(timing)}
    seeds: [1] # [1, 2, 3] trains three models: then differences can be told from chance

# What translates: a variant with a search. The others are compared with the baseline.
systems:
  greedy: {{variant: softmax}}
  # score / length^1.2: by score / length, beams of models that have learnt little end too early
  beam4: {{variant: softmax, search: {{kind: beam, width: 4, length_normalization: 1.2}}}}
baseline: greedy

test_sets:
  test: {{kind: files, {_files(study, study.test)[1:]}

metrics:
  - {{kind: bleu}}
  - {{kind: chrf}}

# Also the scores of short and long sentences, and of those with rare words:
# analyses:
#   buckets: {{kind: buckets, test_set: test}}

# On a GPU: {{train: {{gpus: 1}}, decode: {{gpus: 1}}}}
resources:
  train: {{cpus: {timing.cpus}}}
"""


def _files(study: FirstStudy, pair: Pair) -> str:
    paths = (
        json.dumps(os.path.relpath(path, study.root), ensure_ascii=False)
        for path in (pair.source, pair.target)
    )
    columns = f", columns: {list(pair.columns)}" if pair.columns else ""
    return "{{source: {}, target: {}{}}}".format(*paths, columns)


def _autocast(timing: Timing) -> str:
    if len(timing.speeds) < 2:
        return "not timed; bf16 is quicker on some processors, fp32 (none) on others"
    if timing.busy and timing.autocast == "bf16":
        return "the default: other programs kept this machine busy, so that timing decides nothing"
    if not timing.steady:
        return "the default: repeated timings of bf16 and fp32 (none) disagreed"
    bf16, none = timing.speeds["bf16"], timing.speeds["none"]
    names = ("bf16", "fp32 (none)") if bf16 >= none else ("fp32 (none)", "bf16")
    return f"{names[0]} was {max(bf16, none) / min(bf16, none):.1f} times as fast as {names[1]} here"


# ---------------------------------------------------------------- `creamtea init`

MIN_PAIRS = 300
# smaller texts may not fill the vocabulary: distinct words per subword; characters (checked in a second)
FEW_WORDS, FEW_CHARACTERS = 2, 2_000_000
SETS = ("dev", "test")
TEMPORARY = ".creamtea-init-"  # prefix of the temporary folder's name
TEXT = "text"  # the folder of text set aside, until it is moved to its place
_NOT_IN_PATHS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # line ends, bytes outside UTF-8
ANY_TEXT = ("train", "training", "corpus", "text", "source", "src", "data", "bitext", "parallel", "tmp")


@dataclass(frozen=True)
class InitOptions:
    """The options of `creamtea init`. `given`: the pairs of dev and test that the user gave."""

    train: Pair
    given: dict[str, Pair]
    languages: tuple[str | None, str | None]
    output: Path
    seed: int
    force: bool
    timed: bool = True


def begin(options: InitOptions, progress: Callable[[str], None]) -> FirstStudy:
    """Write the study, and a folder beside it with the text set aside.

    Raises InputError, before anything is written, if a file is bad or something would be overwritten. If it
    fails or is interrupted, it leaves nothing behind.
    """
    pairs = {"train": options.train, **options.given}
    for name, pair in pairs.items():
        progress(f"reading {name}: {pair.source}, {pair.target}")
        _check_texts(pair)
    languages = _languages(options)
    missing = [name for name in SETS if name not in options.given]
    sets_aside = ("train", *missing) if missing else ()
    _check_written(options, pairs, [f"{name}.{suffix}" for name in sets_aside for suffix in languages])
    unspaced = any_unspaced(*languages)
    test = options.given.get("test")  # held out from training; text set aside shares no sentence anyway
    held_out = frozenset(map(normalise, lines_of(test.source)) if test else ())
    text = survey(options.train.lines(), bare, unspaced=unspaced, held_out=held_out)
    if text.usable < MIN_PAIRS:
        raise InputError(
            f"{text.usable:,} of {counted(text.pairs, 'pair')} can be trained on ({text.empty:,} with an "
            f"empty side, {text.long:,} too long, {text.uneven:,} of uneven lengths, {text.held_out:,} "
            f"with a sentence of the test set, {text.repeated:,} repeated): a study needs at least "
            f"{MIN_PAIRS}"
        )
    with ExitStack() as stack:
        with _writing(options.output):
            parent = options.output.absolute().parent
            place = Path(stack.enter_context(TemporaryDirectory(dir=parent, prefix=TEMPORARY)))
        why = ""
        if missing:
            sets = draw_lines(text, missing, options.seed)
            progress(
                f"setting aside {counted(sum(map(len, sets.values())), 'pair')} for {' and '.join(missing)}"
            )
            with _writing(options.output):
                write_sets(options.train, sets, place / TEXT, languages)
            train, folder = _pair("train", place / TEXT, languages), _data_folder(options)
            text = survey(train.lines(), bare, unspaced=unspaced, held_out=held_out)
            pairs |= {name: _pair(name, folder, languages) for name in ("train", *missing)}
            why = (
                f"\n    # `creamtea init` set {' and '.join(missing)} aside at random "
                f"(seed {options.seed}):\n    # none of their sentences is in the training text."
            )
        else:
            train = options.train
        recipe = recipe_for(text)
        few = text.source.vocabulary + text.target.vocabulary < FEW_WORDS * recipe.vocabulary
        if few or text.source.characters + text.target.characters < FEW_CHARACTERS:
            pairs_left = usable_pairs(train.lines(), unspaced, held_out)
            recipe = recipe_for(text, filled_vocabulary(recipe, pairs_left))
        if recipe.vocabulary < MIN_VOCABULARY:
            raise InputError(
                f"{options.train.source}, {options.train.target}: their few words make only "
                f"{recipe.vocabulary} subwords, and a study needs at least {MIN_VOCABULARY}: give more text"
            )
        study = FirstStudy(
            name=study_name(options),
            file=options.output,
            root=_common_root(pairs, options.output),
            languages=languages,
            read=options.train,
            train=pairs["train"],
            dev=pairs["dev"],
            test=pairs["test"],
            aside=why,
            text=text,
            recipe=recipe,
            timing=Timing(own_cpus(), {}),
        )
        if options.timed:
            progress("timing a few updates of this shape")
            study = replace(study, timing=time_updates(study.recipe, text))
        with _writing(options.output):
            _write_study(study, place, _data_folder(options))
    return study


def _pair(name: str, folder: Path, suffixes: tuple[str, str]) -> Pair:
    source, target = (folder / f"{name}.{suffix}" for suffix in suffixes)
    return Pair(source, target)


def _data_folder(options: InitOptions) -> Path:
    return options.output.with_name(f"{options.output.stem}-data")


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Turn an OSError while writing into an InputError."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or output
        if Path(place).name.startswith(TEMPORARY):
            place = Path(place).parent
        raise InputError(
            f"{place}: cannot be written ({error.strerror or error}); name another study with --output"
        ) from None


def _write_study(study: FirstStudy, place: Path, folder: Path) -> None:
    """Move the text that was set aside from `place` to its folder, and write the study.

    Loads and plans the study first; raises StudyErrors if it is not valid.
    """
    text, draft, before = place / TEXT, place / "study", place / "before"
    draft.write_text(study_text(study), encoding="utf-8")
    before.mkdir()
    made = text.exists() and not folder.exists()
    put: list[Path] = []
    try:
        if text.exists():
            folder.mkdir(exist_ok=True)
            for file in list(text.iterdir()):
                target = folder / file.name
                if target.exists():
                    shutil.move(target, before / file.name)
                put.append(target)  # from here on, the file at this place is ours
                shutil.move(file, target)
        loaded = load_study(draft, name=str(study.file))
        plan(loaded.study, study.root, loaded.errors)
        draft.replace(study.file)
    except BaseException:  # also an interruption: else the same command would find a folder it may not touch
        for file in put:
            file.unlink(missing_ok=True)
        for file in list(before.iterdir()):
            shutil.move(file, folder / file.name)
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _check_texts(pair: Pair) -> None:
    counts = []
    for path, column in pair.sides():
        try:
            facts = scan(path)
        except UnreadableFile as error:
            raise InputError(f"{path}: {error}") from None
        if facts.invalid_line is not None:
            raise InputError(f"{path}: line {facts.invalid_line:,} is not UTF-8; convert it (iconv -t UTF-8)")
        if facts.blank:
            raise InputError(f"{path}: a file without text")
        counts.append(facts.lines)
        for number, line in enumerate(lines_of(path) if column else (), start=1):
            try:
                in_column(line, column)
            except ValueError as error:
                raise InputError(f"{path}, line {number:,}: {error}; --columns names others") from None
    if counts[0] != counts[1]:
        raise InputError(
            f"{pair.source} has {counted(counts[0], 'line')} and {pair.target} {counts[1]:,}: line n of one "
            "must be the translation of line n of the other; align them again"
        )


def _languages(options: InitOptions) -> tuple[str, str]:
    """Return the requested languages, else the endings of the files' names: train.en, train.en.gz."""
    files = (options.train.source, options.train.target)
    names = ("source", "target")
    codes = []
    for name, lang, path in zip(names, options.languages, files, strict=True):
        code = known_code(lang) or lang if lang else ending(path)
        if not re.fullmatch(LANGUAGE_CODE, code):
            lead = f"--{name}-language {lang}: " if lang else f"{path} does not end in a language's code: "
            raise InputError(f"{lead}give --{name}-language with a code (en, deu, zh-CN)")
        codes.append(code)
    if codes[0] == codes[1]:
        raise InputError(f"both sides are {codes[0]}: give --source-language or --target-language")
    return codes[0], codes[1]


def _check_written(options: InitOptions, pairs: dict[str, Pair], set_aside: list[str]) -> None:
    """Check that the study and the text set aside can be written.

    Raises InputError if not, if they would overwrite an input or, without --force, anything else.
    """
    read = [path for pair in pairs.values() for path in (pair.source, pair.target)]
    output = options.output
    for path in (output, *read):
        if _NOT_IN_PATHS.search(os.path.abspath(path)):  # noqa: PTH100 - links stay as they are
            raise InputError(
                f"{str(path)!r}: a study cannot name this path; leave out line ends and the like"
            )
    with _writing(output):
        if output.is_dir():
            raise InputError(
                f"{output}: is a folder; name a file in it with --output ({output / 'study.yaml'})"
            )
        if not output.absolute().parent.is_dir():
            raise InputError(f"{output}: there is no folder {output.parent}")
        folder = _data_folder(options)
        if set_aside and folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder}: is not a folder, and text is set aside in a folder of this name; move it, or "
                "name another study with --output"
            )
        written = [output, *(folder / name for name in set_aside)]
        for path in (path for path in written if path.exists()):
            if not path.is_file():
                raise InputError(f"{path}: is not a file; move it, or name another study with --output")
            if any(path.samefile(text) for text in read):
                raise InputError(
                    f"{path} would be overwritten, but is an input: move it, or name another study with "
                    "--output"
                )
        taken = [str(path) for path in (output, *([folder] if set_aside else [])) if path.exists()]
    if taken and not options.force:
        exist = "exist" if len(taken) > 1 else "exists"
        raise InputError(f"{' and '.join(taken)} {exist} already: --force overwrites, --output names another")


def study_name(options: InitOptions) -> str:
    """Name the study after its file, or if that is "study", after the text or its folder."""
    name = _plain_name(options.output.stem)
    if name != "study":
        return name or "study"
    source = options.train.source
    text = _plain_name(source.name.removesuffix(".gz").rpartition(".")[0])
    folder = _plain_name(Path(os.path.abspath(source)).parent.name)  # noqa: PTH100 - links stay as they are
    return next((name for name in (text, folder) if name and name.lower() not in ANY_TEXT), name)


def _plain_name(text: str) -> str:
    """Make a valid name of a study from a text."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", without_accents(text)).strip("-._")[:100]
    other = re.match(r"[^A-Za-z]", name) or name.lower() in ("true", "false", "null")  # YAML's own values
    return f"study-{name}" if other else name


def _common_root(pairs: dict[str, Pair], study: Path) -> Path:
    """Return the study's folder if all files are below it, else the innermost folder that holds them."""
    paths = [path for pair in pairs.values() for path in (pair.source, pair.target)]
    files = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links stay as they are
    here = Path(os.path.abspath(study.parent))  # noqa: PTH100
    if all(file.is_relative_to(here) for file in files):
        return here
    return Path(os.path.commonpath([file.parent for file in files]))


# ---------------------------------------------------------------- text set aside

MIN_LINES, MAX_LINES, SHARE = 50, 1000, 15  # lines of each set: a 15th of the pairs, within these bounds


def draw_lines(text: Survey, sets: list[str], seed: int) -> dict[str, NDArray[np.int64]]:
    """Draw the lines (from 0) of each set.

    Draws only pairs whose sides are not empty and occur once in the text, ignoring case and punctuation, so
    that no sentence set aside stays in the training text. `text` is a survey by `bare` sentences. Raises
    InputError if there are too few such pairs.
    """
    once = np.ones(text.pairs, dtype=np.bool_)
    for side in (text.source, text.target):
        _, places, counts = np.unique(side.sentences, return_inverse=True, return_counts=True)
        once &= (counts[places] == 1) & (side.sentences != hash(bare("")))
    candidates = np.flatnonzero(once)
    each = min(MAX_LINES, max(MIN_LINES, text.pairs // SHARE))
    if each * len(sets) > len(candidates) // 2:
        raise InputError(
            f"only {len(candidates):,} of {counted(text.pairs, 'pair')} have sentences that occur once, "
            f"which is too few to set aside {each * len(sets):,} of them: give --dev and --test, or more text"
        )
    drawn = np.random.default_rng(seed).choice(candidates, each * len(sets), replace=False)
    return {name: np.sort(part) for name, part in zip(sets, np.split(drawn, len(sets)), strict=True)}


def write_sets(
    text: Pair, sets: dict[str, NDArray[np.int64]], folder: Path, suffixes: tuple[str, str]
) -> None:
    """Write `train` and each set into the folder, as NAME.SUFFIX; the text's own files are not changed."""
    folder.mkdir(parents=True, exist_ok=True)
    of_line = {int(line): name for name, lines in sets.items() for line in lines}
    for (path, column), suffix in zip(text.sides(), suffixes, strict=True):
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    (folder / f"{name}.{suffix}").open("w", encoding="utf-8", newline="")
                )
                for name in ("train", *sets)
            }
            for number, line in enumerate(lines_of(path, column)):
                files[of_line.get(number, "train")].write(line + "\n")
