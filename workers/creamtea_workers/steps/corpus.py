"""Step `corpus`: training and development text, normalised, filtered and counted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.methods.family import implementation
from creamtea.steps.texts import CorpusParams
from creamtea_workers.corpora.files import FilteredCorpus, Pair
from creamtea_workers.corpora.text import write_lines


def run(context: StepContext[CorpusParams]) -> StepResult:
    """Write the corpus pair by pair, because it need not fit into memory."""
    spec = context.params.corpus
    corpus: FilteredCorpus = implementation(spec).prepare_corpus(spec, context)
    train_kept = _write(context.output, "train", corpus.train)
    dev_kept = _write(context.output, "dev", corpus.dev)
    if corpus.dev_groups:
        write_lines(context.output / "dev.groups", corpus.dev_groups)
    context.progress(1, 1)
    pairs = {
        "train_read": corpus.train_read,
        "train_kept": train_kept,
        "dev_read": corpus.dev_read,
        "dev_kept": dev_kept,
    }
    more = {"train_added": corpus.train_added, "train_made_up": corpus.train_made_up}
    pairs |= {subject: count for subject, count in more.items() if count}
    return StepResult(
        metrics=[MetricRow("pairs", count, subject=subject) for subject, count in pairs.items()]
        + [MetricRow("dropped", count, subject=name) for name, count in corpus.dropped.items()]
    )


def _write(folder: Path, split: str, pairs: Iterable[Pair]) -> int:
    """Write pairs as two files of lines. Return the number of pairs."""
    count = 0
    with (
        (folder / f"{split}.src").open("w", encoding="utf-8", newline="\n") as sources,
        (folder / f"{split}.tgt").open("w", encoding="utf-8", newline="\n") as targets,
    ):
        for pair in pairs:
            count += 1
            sources.write(f"{pair.source}\n")
            targets.write(f"{pair.target}\n")
    return count
