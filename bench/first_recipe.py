"""What the recipe of `creamtea init` learns from a small text in so many seconds of one thread.

    python bench/first_recipe.py train.en train.de [--pairs 5000] [--seconds 290] [--set KEY=VALUE ...]

The pairs of all files are shuffled, always alike: 500 are for test, 300 for development, and the first of the
rest that share no sentence with those are trained on. --more takes a second test set, `more`, from the pairs
that are left. SOURCE TARGET may be repeated. --set changes the study that `creamtea init` writes, as it does
for `creamtea run`.

Seconds of the processor count, so that other programs hardly matter: those of updates and of segmenting text
anew, not those of validations. A linear schedule falls to 0 at their end.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import execute
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
from creamtea.study.start import InitOptions, Pair, begin
from creamtea.study.survey import lines_of
from creamtea_workers.steps import train
from creamtea_workers.training.trainer import Trainer

HELD_OUT = {"test": 500, "dev": 300}
SETTINGS = (
    "test_sets.dev={kind: files, source: dev.src, target: dev.tgt}",
    "metrics=[{kind: bleu, tokenize: 13a}]",
    "resources={train: {cpus: 1}, decode: {cpus: 1}}",
    "variants.softmax.training.autocast=none",
    "variants.softmax.training.checkpoint_every=1000000000",  # its time would count
)
MORE = "test_sets.more={kind: files, source: more.src, target: more.tgt}"


class TimedTrainer(Trainer):
    """A training that ends after `seconds` of the processor."""

    seconds = began = 0.0

    def spent(self) -> float:
        self.began = self.began or time.process_time()
        return time.process_time() - self.began

    def stop_reason(self) -> str:
        return "seconds" if self.spent() > self.seconds else super().stop_reason()

    def learning_rate(self) -> float:
        if self.training.schedule != "linear":
            return super().learning_rate()
        share, warm = self.spent() / self.seconds, self.training.warmup / self.training.max_updates
        return self.training.learning_rate * max(0.0, min(share / warm, (1 - share) / (1 - warm)))

    def validate(self) -> None:
        before = self.spent()
        super().validate()
        self.began += self.spent() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="SOURCE TARGET")
    parser.add_argument("--pairs", type=int, default=5000, help="to train on")
    parser.add_argument("--more", type=int, default=0, metavar="PAIRS", help="of a second test set")
    parser.add_argument("--seconds", type=float, default=290.0, help="for each seed")
    parser.add_argument("--seeds", default="1, 2")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the study")
    options = parser.parse_args()
    TimedTrainer.seconds = options.seconds
    train.Trainer = TimedTrainer  # type: ignore[attr-defined, misc]
    with tempfile.TemporaryDirectory() as folder:
        study = write_study(options.files, options.pairs, Path(folder), options.more)
        settings = [*options.set, *SETTINGS, f"variants.softmax.seeds=[{options.seeds}]"]
        run(study, [*settings, MORE] if options.more else settings)


def write_study(files: list[Path], count: int, folder: Path, more: int = 0) -> Path:
    """Draw the sets and let `creamtea init` write the study of them."""
    names = zip(files[::2], files[1::2], strict=True)
    rest = [pair for both in names for pair in zip(*map(lines_of, both), strict=True)]
    random.Random(1).shuffle(rest)
    sets, held_out = {}, set[str]()
    for name, size in HELD_OUT.items():
        sets[name], rest = rest[:size], rest[size:]
        held_out.update(*sets[name])
    kept = [pair for pair in rest if held_out.isdisjoint(pair)]
    sets["train"], left = kept[:count], kept[count:]
    if more:
        trained_on = {sentence for pair in sets["train"] for sentence in pair}
        sets["more"] = [pair for pair in left if trained_on.isdisjoint(pair)][:more]
    for name, drawn in sets.items():
        for side, lines in zip(("src", "tgt"), zip(*drawn, strict=True), strict=True):
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = {name: Pair(folder / f"{name}.src", folder / f"{name}.tgt") for name in sets}
    languages, study = (files[0].suffix[1:], files[1].suffix[1:]), folder / "study.yaml"
    options = InitOptions(pairs.pop("train"), pairs, languages, study, 1, force=False, timed=False)
    print(begin(options, lambda words: None).recipe, flush=True)
    return study


def run(path: Path, settings: list[str]) -> None:
    """Run the steps, and print a line for each training and each score."""
    store, files = ArtefactStore(path.parent / "artefacts"), dict[str, list[StoredFile]]()
    planned = plan(load_study(path, settings).study, path.parent)
    names = {node.key: node.node for node in planned.nodes}
    for step in (step for step in planned.steps if step.kind != "compare"):
        name = names[step.key]
        inputs = {role: [files[key] for key in keys] for role, keys in step.inputs.items()}
        task = StepTask(**{**vars(step), "inputs": inputs}, fence=1, name=name, artefacts=store.root)
        outcome = execute(task)
        if outcome.error_kind is not None:
            raise SystemExit(f"{name} failed, {outcome.error_kind}: {outcome.error}")
        files[step.key] = outcome.files
        if step.kind in ("train", "score"):
            print(name, *(f"{row.name} {row.value:.3f}" for row in outcome.result.metrics), flush=True)


if __name__ == "__main__":
    main()
