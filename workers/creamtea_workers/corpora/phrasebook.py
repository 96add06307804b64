"""Sentence pairs of a phrasebook: a text file of patterns, the words that fill them, and their forms.

A file has sections. `#` starts a comment, ` = ` stands between source and target, ` / ` between fields.

    [forms]                        forms that agree with a feature: NAME: FEATURE/FEATURE FORM, * FORM
    der: m der, f die, n das
    [words thing] name = name      a class, with the fields of each side; (m) is the feature of a word,
    lamp = Lampe (f)               and `! ` marks an idiom
    [words thing item] name = name two classes; `- ` marks a word of the first alone
    - bed = Bett (n)
    [join target]                  contractions of neighbouring words (regular expressions)
    in dem -> im
    [patterns]
    Where is the {thing}? = Wo ist {der@thing} {thing}?

In a pattern `{thing}` is the first field of a word of the class, `{thing.plural}` another field, `{thing2}`
a second word of the class, and `{der@thing}` the form `der` for the feature of the word that fills `thing`.
`{do.aux@who}` is the form that the field `aux` of `do` names. Fields may contain slots of the pattern.

The digest of a pattern and a filling decides whether this filling is held out. No training sentence that the
phrasebook makes has a held-out filling; each development and test sentence has one. Text `beside` the
phrasebook may have such fillings, but its sentences are never drawn for development or test.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, zip_longest
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import PhrasebookCorpus
from creamtea.methods.test_sets import PhrasebookTestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.text import normalise, read_lines

HELD_OUT = 0.1  # share of a pattern's fillings
MAX_WEIGHT = 60  # bound on a pattern's weight, the square root of the number of its sentences
MAX_REPEATS = 20_000  # consecutive draws without a new sentence
SIDES = (0, 1)  # source, target
_SLOT = re.compile(r"\{([^{}]+)\}")
_BEGIN, _END = "\ue000", "\ue001"  # around an idiom's words, until their places are known


def prepare_corpus(spec: PhrasebookCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    files = Files.of(context)
    phrasebook = Phrasebook.read(files.lines(spec.file))
    beside = [pair for text in spec.beside for pair in files.pairs(text) if pair.source and pair.target]
    seen = {pair.source for pair in beside}
    made = phrasebook.sentences(f"{spec.seed} train", spec.seed, spec.idiom_rate, False, seen)
    train = [Pair(segment.source, segment.reference) for segment in islice(made, spec.train)]
    unseen = phrasebook.sentences(f"{spec.seed} dev", spec.seed, spec.idiom_rate, True, seen)
    dev = [Pair(segment.source, segment.reference) for segment in islice(unseen, spec.dev)]
    kept = [*train, *beside]
    return FilteredCorpus(kept, dev, len(kept), len(dev), dict.fromkeys(("empty", "duplicate"), 0))


def prepare_test_set(spec: PhrasebookTestSet, context: StepContext[TestSetParams]) -> Prepared:
    corpus = context.params.corpus
    assert isinstance(corpus, PhrasebookCorpus)  # the study's check ensures it
    phrasebook = Phrasebook.read(Files.of(context).lines(corpus.file))
    text = context.input("corpus")
    seen = {*read_lines(text / "train.src"), *read_lines(text / "dev.src")}
    made = phrasebook.sentences(f"{spec.seed} test", corpus.seed, spec.idiom_rate, True, seen)
    return Prepared(list(islice(made, spec.lines)))


@dataclass(frozen=True)
class Word:
    """A line of a class: the fields of each side by name, and the feature that other words agree with."""

    name: str  # the first field of the source; an idiom's dictionary form
    fields: tuple[dict[str, str], dict[str, str]]
    feature: str
    idiom: bool


@dataclass(frozen=True)
class Pattern:
    sides: tuple[str, str]
    slots: tuple[str, ...]  # slots that words fill, in the order of the source


@dataclass
class Phrasebook:
    forms: dict[str, dict[str, str]] = field(default_factory=dict)
    words: dict[str, list[Word]] = field(default_factory=dict)
    joins: tuple[list[tuple[str, str]], list[tuple[str, str]]] = field(default_factory=lambda: ([], []))
    patterns: list[Pattern] = field(default_factory=list)

    @classmethod
    def read(cls, lines: Iterable[str]) -> Phrasebook:
        """Read and check a phrasebook. Raise a StepError that names the wrong line or pattern."""
        book, section, heading = cls(), "", ""
        for number, raw in enumerate(lines, 1):
            line = normalise(raw.split("#")[0])
            if match := re.fullmatch(r"\[(forms|join source|join target|patterns|words [\w ]+)\](.*)", line):
                section, heading = match[1], match[2].strip()
            elif line:
                with _explained(f"line {number}"):
                    book._add(section, heading, line)
        if not book.patterns:
            raise StepError("phrasebook: it has no patterns")
        for pattern in book.patterns:
            with _explained(f"pattern {pattern.sides[0]}"):
                first = {slot: book._class(slot)[0] for slot in pattern.slots}
                book._written(pattern, first)
                for slot in pattern.slots:
                    if all(word.idiom for word in book._class(slot)):
                        raise ValueError(f"{slot} has only idioms: a sentence without one needs a word")
                    for word in book._class(slot):
                        book._written(pattern, {**first, slot: word})
        return book

    def _add(self, section: str, heading: str, line: str) -> None:
        """Read a line of a section. Raise ValueError if it is malformed."""
        if section == "forms":
            name, forms = line.split(": ")
            of_features = [part.split(" ", 1) for part in forms.split(", ")]
            self.forms[name] = {
                feature_name: form for features, form in of_features for feature_name in features.split("/")
            }
        elif section.startswith("join"):
            left, right = line.split(" -> ")
            self.joins[section == "join target"].append((rf"\b{left}\b", right))
        elif section.startswith("words"):
            alone, line = line.startswith("- "), line.removeprefix("- ")
            plain, _, feature = (
                line.removesuffix(")").partition(" (") if line.endswith(")") else (line, "", "")
            )
            fields = [
                dict(zip(names.split(" / "), texts.split(" / "), strict=True))
                for names, texts in zip(
                    heading.split(" = "), plain.removeprefix("! ").split(" = "), strict=True
                )
            ]
            name = _SLOT.sub("one's", next(iter(fields[0].values())))
            word = Word(name, (fields[0], fields[1]), feature, plain.startswith("! "))
            for of_class in section.split()[1 : 2 if alone else None]:
                self.words.setdefault(of_class, []).append(word)
        elif section == "patterns":
            source, target = line.split(" = ")
            slots = [slot.split(".")[0] for slot in _SLOT.findall(source) if "@" not in slot]
            self.patterns.append(Pattern((source, target), tuple(dict.fromkeys(slots))))
        else:
            raise ValueError("text before the first section")

    def _class(self, slot: str) -> list[Word]:
        return self.words[slot.rstrip("0123456789")]

    def sentences(
        self, stream: str, seed: int, idiom_rate: float, held_out: bool, seen: set[str]
    ) -> Iterator[Segment]:
        """Yield sentences that are not in `seen`, and add each to it.

        Fillings are either all held out or all not (`held_out`). `stream` names the random numbers; `seed`
        chooses which fillings are held out. Raises StepError once there are no more sentences.
        """
        rng = random.Random(stream)
        weights = [
            min(MAX_WEIGHT, math.sqrt(math.prod(len(self._class(slot)) for slot in pattern.slots)))
            for pattern in self.patterns
        ]
        can_hold = [
            any(word.idiom for slot in one.slots for word in self._class(slot)) for one in self.patterns
        ]
        with_idiom = [weight * can for weight, can in zip(weights, can_hold, strict=True)]
        made = repeats = 0
        while repeats < MAX_REPEATS:
            idiom = any(can_hold) and rng.random() < idiom_rate
            [pattern] = rng.choices(self.patterns, with_idiom if idiom else weights)
            filling = self._filling(pattern, rng, idiom)
            repeats += 1
            names = {word.name for word in filling.values()}
            unseen = (_is_held_out(seed, pattern.sides[0], slot, one.name) for slot, one in filling.items())
            if len(names) == len(filling) and held_out == any(unseen):
                segment = self._written(pattern, filling)
                if segment.source not in seen:
                    seen.add(segment.source)
                    made, repeats = made + 1, 0
                    yield segment
        raise StepError(f"the phrasebook has hardly more than {made:,} such sentences: ask for fewer")

    def _filling(self, pattern: Pattern, rng: random.Random, idiom: bool) -> dict[str, Word]:
        """Choose a word for each slot. With `idiom`, the first slot that may have an idiom gets one."""
        filling: dict[str, Word] = {}
        for slot in pattern.slots:
            words = [word for word in self._class(slot) if word.idiom == idiom]
            idiom = idiom and not words
            choices = words or [word for word in self._class(slot) if not word.idiom]
            filling[slot] = choices[int(rng.random() * len(choices))]
        return filling

    def _written(self, pattern: Pattern, filling: dict[str, Word]) -> Segment:
        texts, spans = [], []
        for side in SIDES:
            text = self._expanded(pattern.sides[side], side, filling)
            for left, right in self.joins[side]:
                text = re.sub(left, right, text)
            text = re.sub(f"(?<={_BEGIN}) +| +(?={_END})", "", text)
            text = normalise(re.sub(f"{_END} ?{_BEGIN}", lambda mark: mark[0][1:-1], text))
            start = re.search(r"\w", text)
            text = (
                text[: start.start()] + text[start.start()].upper() + text[start.end() :] if start else text
            )
            spans.append(_spans(text))
            texts.append(re.sub(f"[{_BEGIN}{_END}]", "", text))
        idioms: list[dict[str, Any]] = [
            {"name": word.name, "source": source or [], "target": target or []}
            for word in filling.values()
            if word.idiom
            for source, target in zip_longest(*spans)
        ]
        return Segment(texts[0], texts[1], idioms)

    def _expanded(self, template: str, side: int, filling: dict[str, Word]) -> str:
        def replaced(match: re.Match[str]) -> str:
            what, _, agreeing = match[1].partition("@")
            slot, _, name = what.partition(".")
            if not agreeing:
                word = filling[slot]
                text = word.fields[side][name] if name else next(iter(word.fields[side].values()))
                text = self._expanded(text, side, filling)
                return f"{_BEGIN}{text}{_END}" if word.idiom and text else text
            form = filling[slot].fields[side][name] if name else what
            feature = filling[agreeing].feature
            agreed = self.forms[form].get(feature, self.forms[form].get("*"))
            if agreed is None:
                raise ValueError(f"{form} has no form for {feature or 'a word without a feature'}")
            return agreed

        return _SLOT.sub(replaced, template)


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn an error in a line or a pattern into a StepError that names it."""
    try:
        yield
    except (KeyError, ValueError, RecursionError, re.error) as error:
        raise StepError(f"phrasebook, {where}: {error}") from None


@cache
def _is_held_out(seed: int, pattern: str, slot: str, word: str) -> bool:
    digest = hashlib.sha256(f"{seed}\n{pattern}\n{slot}\n{word}".encode()).digest()
    return int.from_bytes(digest[:4]) < HELD_OUT * 2**32


def _spans(text: str) -> list[list[int]]:
    """Return the characters of idioms, counted in the text without the marks."""
    spans, place = [], 0
    for part in re.split(f"({_BEGIN}|{_END})", text):
        if part == _BEGIN:
            spans.append([place, place])
        elif part == _END:
            spans[-1][1] = place
        else:
            place += len(part)
    return spans
