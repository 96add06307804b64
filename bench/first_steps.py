"""A small study, spoilt, planned, and run as far as its text goes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spoiling import nudged, spoilt

SMALL = """\
name: small
languages: {source: en, target: de}
corpora:
  text:
    kind: files
    train:
      - {source: train.en, target: train.de, repeat: 2}
      - {source: more.en, target: more.de, tokenized: no}
    dev: {source: dev.en, target: dev.de}
    filters: {max_words: 20, max_ratio: 4.0, max_characters: 2000, duplicates: true, held_out: [test]}
  made: {kind: synthetic, train: 200, dev: 20, seed: 3}
  words: {kind: g2p, languages: [ady, ben], train: "{language}.tsv", dev: "{language}.tsv"}
subwords:
  joint: {kind: bpe, vocabulary: 120, sample: 1000}
  other: {kind: unigram, vocabulary: 90}
  letters: {kind: characters}
test_sets:
  test: {kind: files, source: dev.en, target: dev.de, limit: 20, tokenized: no}
  idioms: {kind: files, source: dev.en, target: dev.de, idioms: idioms.jsonl}
  sampled: {kind: synthetic, corpus: made, lines: 10, idiom_rate: 0.5, seed: 5}
  forms: {kind: g2p, languages: [ben], file: "{language}.tsv", limit: 5}
variants:
  files: {corpus: text, subwords: joint, objective: {kind: softmax}}
  made: {corpus: made, subwords: other, objective: {kind: softmax}}
  words: {corpus: words, subwords: letters, objective: {kind: softmax}}
alignment: {aligner: em, iterations: 2}
systems:
  files: {variant: files, selection: {kind: lexicon, k: 5}, test_sets: [test, idioms]}
  made: {variant: made, test_sets: [sampled], baseline: made}
  words: {variant: words, test_sets: [forms], baseline: words}
baseline: files
metrics: [{kind: chrf}]
"""
FORETOLD = {"corpus": ("nothing-left",), "subwords": ("vocabulary",)}  # warnings of what a step may fail of
FIRST_STEPS = ("corpus", "test_set", "overlap", "subwords", "encode", "align")
LARGE = 5000  # sentences to make up, say: a case should take a second


def small_texts(folder: Path) -> None:
    """The files of the small study."""
    rng = random.Random(1)
    nouns, verbs = ("house", "dog", "cup", "tea", "garden", "river"), ("sees", "drinks", "likes", "hears")

    def line() -> str:
        return f"The {rng.choice(nouns)} {rng.choice(verbs)} the {rng.choice(nouns)} {rng.randrange(90)} ."

    for name, count in (("train", 150), ("more", 50), ("dev", 12)):
        for side in ("en", "de"):
            text = "".join(f"{line()}\n" for _ in range(count))
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    idiom = '[{"name": "x", "source": [0, 3], "target": [0, 3]}]\n'
    (folder / "idioms.jsonl").write_text(idiom * 12, encoding="utf-8")
    for language in ("ady", "ben"):
        words = "".join(f"{''.join(rng.choices('abcd', k=4))}\ta b c d\n" for _ in range(30))
        (folder / f"{language}.tsv").write_text(words, encoding="utf-8")


@contextmanager
def first_steps() -> Iterator[Callable[[random.Random], str]]:
    from creamtea.engine.executors.base import StepTask
    from creamtea.engine.runner import execute
    from creamtea.errors import InputError
    from creamtea.store.artefacts import ArtefactStore
    from creamtea.study.loader import load_study
    from creamtea.study.plan import plan
    from creamtea.study.warnings import warnings_of

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, store = folder / "study.yaml", ArtefactStore(folder / "artefacts")
        small_texts(folder)
        known: dict[str, list[Any]] = {}  # what steps have left, by key: most studies share most steps

        def case(rng: random.Random) -> str:
            change = spoilt if rng.random() < 0.3 else nudged
            text = SMALL if isinstance(rng, Untouched) else change(SMALL, rng)
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
            try:
                loaded = load_study(path)
                planned = plan(loaded.study, folder, loaded.errors)
                warned = warnings_of(loaded.study, planned, folder, loaded.place_of)
            except InputError:
                return "refused"
            texts = (*loaded.study.corpora.values(), *loaded.study.test_sets.values())
            sizes = [size for text in texts for size in _sizes(text)]
            if max([*sizes, 100 * loaded.study.alignment.iterations]) > LARGE:
                return "taken, and too large to run here"
            for step in planned.steps:
                if step.kind not in FIRST_STEPS or step.key in known:
                    continue
                inputs = {role: [known[key] for key in keys] for role, keys in step.inputs.items()}
                task = StepTask(
                    step.key, 1, step.kind, step.kind, step.version, step.params, inputs, step.locations,
                    step.resources, store.root,
                )  # fmt: skip
                outcome = execute(task)
                if outcome.error_kind is not None:
                    if any(warning.kind in FORETOLD.get(step.kind, ()) for warning in warned):
                        return f"taken, {step.kind} failed as a warning had said"
                    if step.kind == "subwords" and _is_made_up(loaded.study, planned, step.key):
                        return "taken, subwords failed for what only the made-up text shows"
                    raise RuntimeError(f"{step.kind} failed, {outcome.error_kind}: {outcome.error}")
                known[step.key] = outcome.files
            return "taken and run"

        case(Untouched())  # which loads all that a step needs
        yield case


class Untouched(random.Random):
    """Leaves the study as it is."""


def _is_made_up(study: Any, planned: Any, key: str) -> bool:
    corpora = {node.labels["corpus"] for node in planned.nodes if node.key == key}
    return any(study.corpora[name].kind != "files" for name in corpora)


def _sizes(text: Any) -> list[int]:
    """Of what is to be made up, or repeated."""
    repeated = (
        [150 * pair.repeat for pair in text.train] if text.kind == "files" and hasattr(text, "train") else []
    )
    made = [getattr(text, key, 0) for key in ("train", "dev", "lines")]
    return [*repeated, *(value for value in made if isinstance(value, int))]
