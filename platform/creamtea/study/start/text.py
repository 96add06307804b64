"""The text of a first study, with comments."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from creamtea.document.warning import StudyWarning
from creamtea.languages import pair as language_pair
from creamtea.study.start.aside import Pair
from creamtea.study.start.recipe import Recipe
from creamtea.study.start.timing import Timing, in_words
from creamtea.study.survey import Survey
from creamtea.wording import counted


@dataclass(frozen=True)
class FirstStudy:
    """What a first study is made of. `root`: the folder that its paths are relative to, absolute."""

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
    """What a command about the study needs beside its file: nothing where its text lies beside it."""
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
    """How long the training will take, and how that is known."""
    minutes = study.timing.minutes(study.recipe)
    if minutes is None:
        return "How long training takes is not known: no updates were timed here."
    speed = study.timing.speeds[study.timing.autocast]
    cpus = study.timing.cpus
    threads = f"{counted(cpus, 'thread')}"
    busy = " Other programs kept it busy meanwhile: without them it is quicker." if study.timing.busy else ""
    return (
        f"Training will take {in_words(minutes)} on this machine, at {speed:,.0f} target subwords per "
        f"second: estimated from a few updates of this shape with {threads}.{busy} Decoding and "
        "scoring take a few minutes more."
    )


LITTLE_TEXT, LONG_SENTENCES = 10_000, 15  # pairs; words


def doubts(study: FirstStudy) -> list[StudyWarning]:
    """What the text gives reason to doubt. 4,333 pairs of news, 21 words each, came to a BLEU of 1.8; 10,490
    everyday ones, six words each, to 12.9 (docs/results/data/first-studies.yaml)."""
    words = study.text.source.words / max(1, study.text.pairs)
    if study.text.usable >= LITTLE_TEXT or words <= LONG_SENTENCES:
        return []
    found = (
        f"{study.text.usable:,} pairs are few for sentences of {words:.0f} words on average: models of this "
        "size learnt next to nothing from 4,000 sentences of news (BLEU 1.8)"
    )
    remedy = "Add text, or take shorter sentences; `creamtea compare` needs no training."
    return [StudyWarning("little-text", str(study.train.source), found, remedy)]


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
    # Chooses the best checkpoint, and when to stop.{study.aside}
    dev: {_files(study, study.dev)}
    # Training pairs with a sentence of the test set are dropped.
    filters: {{held_out: [test]}}

# {_words(text)}: a subword must be seen often to be learnt.
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


def _words(text: Survey) -> str:
    return f"{text.source.words:,} and {counted(text.target.words, 'word')}"


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
