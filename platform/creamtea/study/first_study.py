"""A first study: settings that fit the size of a text, its training time on this machine, and its file.

A small text in trainings of days needs a small joint vocabulary, small batches and much dropout (Sennrich and
Zhang 2019). In minutes of a processor, many updates matter most: docs/results/data/training.yaml has what was
tried with 5,000 to 20,000 pairs. Sizes for more text follow the studies that ship with creamtea.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, cast

from creamtea.document.mistakes import StudyWarning
from creamtea.languages import pair as language_pair
from creamtea.methods.texts import Subwords
from creamtea.study.survey import Survey
from creamtea.study.warnings import MIN_WORDS, least_vocabulary, same_sides_warning
from creamtea.wording import counted

# ---------------------------------------------------------------- settings that fit the text

VOCABULARIES = (200, 500, 1000, 2000, 4000, 8000, 16000, 32000)
UPDATES = 6000  # as many as small texts get, at most
WARMUP = 0.3  # of the updates


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
    # The vocabulary grows with the square root of the words, as a text's distinct words do (Heaps), so that
    # each subword is seen often. It is never smaller than the characters need.
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
    """Return the recipe's vocabulary, or the largest that these pairs can fill, if that is less.

    Without the workers (SentencePiece) that cannot be known, and the recipe's vocabulary is returned.
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
QUICKER, FAR_QUICKER = 1.15, 3.0  # how much quicker fp32 must be to be chosen: at rest, on a busy machine
OVERHEAD = 1.5  # validations, a busier machine


class _Speed(Protocol):
    def tokens_per_second(
        self, architecture: dict[str, Any], vocabulary: int, batch_tokens: int, length: float, threads: int
    ) -> dict[str, list[float]]: ...


@dataclass(frozen=True)
class Timing:
    """Speeds of a few updates on this machine.

    `speeds`: target subwords per second by `autocast`, medians over rounds; empty if nothing was timed.
    `steady`: True if one was clearly faster in every round, or in none.
    """

    cpus: int
    speeds: dict[str, float]
    busy: bool = False  # other programs had much of the machine when it was timed
    steady: bool = True

    @property
    def autocast(self) -> str:
        """The default, unless the other was clearly faster in every round."""
        return "none" if self.steady and is_quicker(self.speeds, self.busy) else "bf16"

    def minutes(self, recipe: Recipe) -> tuple[float, float] | None:
        """Return minutes of the updates alone, and on a busier machine; None if nothing was timed."""
        if not self.speeds:
            return None
        whole = recipe.epoch_tokens * recipe.epochs / self.speeds[self.autocast] / 60
        return whole, OVERHEAD * whole


def is_quicker(speeds: Mapping[str, float], busy: bool) -> bool:
    """Return True if fp32 is clearly faster than bf16."""
    return speeds.get("none", 0.0) > (FAR_QUICKER if busy else QUICKER) * speeds.get("bf16", 1.0)


def own_cpus() -> int:
    """Return how many cores a training is given on this machine."""
    return min(MAX_CPUS, os.cpu_count() or 1)


def time_updates(recipe: Recipe, architecture: dict[str, Any], text: Survey) -> Timing:
    """Run a few updates of this shape; no speeds if the workers (torch) are not installed."""
    cpus = own_cpus()
    try:
        speed = cast(_Speed, importlib.import_module("creamtea_workers.training.trainer"))
    except ImportError:
        return Timing(cpus, {})
    busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    length = recipe.epoch_tokens / max(1, text.usable)
    rounds = speed.tokens_per_second(architecture, recipe.vocabulary, recipe.size.batch_tokens, length, cpus)
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
    source: Path
    target: Path


@dataclass(frozen=True)
class FirstStudy:
    """The parts of a first study. `root`: the absolute folder that its paths are relative to."""

    name: str
    file: Path
    root: Path
    languages: tuple[str, str]
    train: Pair
    dev: Pair
    test: Pair
    aside: str  # how development and test text were set aside; empty if they were given
    text: Survey
    recipe: Recipe
    timing: Timing


def data_option(study: FirstStudy) -> str:
    """Return the option that a command needs beside the study's file; "" if its text lies beside it."""
    return "" if study.root == study.file.absolute().parent else f" --data {quote(str(study.root))}"


def architecture(recipe: Recipe) -> dict[str, Any]:
    size = recipe.size
    return {
        "encoder_layers": size.encoder_layers,
        "decoder_layers": size.decoder_layers,
        "width": size.width,
        "heads": size.heads,
        "feed_forward": size.feed_forward,
        "dropout": size.dropout,
    }


def duration(study: FirstStudy) -> str:
    """Say how long the training will take, and how that is known."""
    minutes = study.timing.minutes(study.recipe)
    if minutes is None:
        return "How long training takes is not known: no updates were timed here."
    speed, threads = study.timing.speeds[study.timing.autocast], counted(study.timing.cpus, "thread")
    busy = " Other programs kept it busy meanwhile: without them it is quicker." if study.timing.busy else ""
    return (
        f"Training will take {in_words(minutes)} on this machine, at {speed:,.0f} target subwords per "
        f"second: estimated from a few updates of this shape with {threads}.{busy} Decoding and "
        "scoring take a few minutes more."
    )


LITTLE_TEXT, LONG_SENTENCES = 10_000, 15  # pairs; words


def doubts(study: FirstStudy) -> list[StudyWarning]:
    """Warn about a text that is not a translation, or too small for its sentences.

    4,333 pairs of news, 21 words each, came to a BLEU of 1.8; 10,490 everyday ones, six words each, to 12.9
    (docs/results/data/first-studies.yaml).
    """
    words = study.text.source.words / max(1, study.text.pairs)
    same = same_sides_warning(str(study.train.target), study.text)
    warnings = [] if same is None else [same]
    if study.text.usable >= LITTLE_TEXT or words <= LONG_SENTENCES:
        return warnings
    found = (
        f"{study.text.usable:,} pairs are few for sentences of {words:.0f} words on average: models of this "
        "size learnt next to nothing from 4,000 sentences of news (BLEU 1.8)"
    )
    remedy = "Add text, or take shorter sentences; `creamtea compare` needs no training."
    return [*warnings, StudyWarning("little-text", str(study.train.source), found, remedy)]


def study_text(study: FirstStudy) -> str:
    recipe, text, timing = study.recipe, study.text, study.timing
    size, patience = recipe.size, max(100, round(recipe.epochs) + 1)
    source, target = study.languages
    of_file = f"{quote(str(study.file))}{data_option(study)}"
    coverage = f", character_coverage: {recipe.character_coverage}" * (recipe.character_coverage < 1)
    sizes = ", ".join(f"{key}: {value}" for key, value in architecture(recipe).items())
    return f"""\
# {language_pair(source, target)}: {text.usable:,} pairs to train on. Written by `creamtea init`.
#
#   creamtea validate {of_file}    # shows what would run, mistakes and warnings
#   creamtea run      {of_file}    # runs it and prints the report
#
{_comment(duration(study))}
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


def _comment(words: str) -> str:
    lines, line = [], "#"
    for word in words.split():
        if len(line) + 1 + len(word) > 108:  # characters
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line])


def _files(study: FirstStudy, pair: Pair) -> str:
    paths = (
        json.dumps(os.path.relpath(path, study.root), ensure_ascii=False)
        for path in (pair.source, pair.target)
    )
    return "{{source: {}, target: {}}}".format(*paths)


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
