"""Step `overlap`: how many test and development sentences the training text has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.texts import OverlapParams
from creamtea_workers.corpora.files import Pair
from creamtea_workers.corpora.subwords import is_bracketed, split
from creamtea_workers.corpora.text import iterate_lines, normalise, read_jsonl

Segments = Sequence[dict[str, Any]]  # lines of segments.jsonl


def run(context: StepContext[OverlapParams]) -> StepResult:
    """Count test and development sentences in the training text.

    The training text is read once, and only the other sentences are held in memory.
    """
    corpus = context.input("corpus")
    test_sets = [read_jsonl(folder / "segments.jsonl") for folder in context.inputs("test_sets")]
    training, development = (
        map(Pair, *(iterate_lines(corpus / f"{part}.{side}") for side in ("src", "tgt")))
        for part in ("train", "dev")
    )
    sought: dict[str, Segments] = {str(position): segments for position, segments in enumerate(test_sets)}
    sought["dev"] = [{"source": pair.source, "reference": pair.target} for pair in development]
    rows = overlap(training, sought)
    if context.params.symbols:
        rows += unseen(iterate_lines(corpus / "train.src"), test_sets)
    context.progress(1, 1)
    return StepResult(metrics=rows)


def overlap(training: Iterable[Pair], texts: Mapping[str, Segments]) -> list[MetricRow]:
    """Count, for each text, the sources in the training text: alone, and with one of their references.

    All text is normalised, as the training text is. The subjects of the rows are the keys of `texts`.
    """
    sought = {subject: [_pairs_of(segment) for segment in segments] for subject, segments in texts.items()}
    wanted = {pairs[0].source for segments in sought.values() for pairs in segments}
    sources: set[str] = set()
    pairs: set[Pair] = set()
    for pair in training:
        if pair.source in wanted:
            sources.add(pair.source)
            pairs.add(pair)
    rows = []
    for subject, segments in sought.items():
        seen = {
            "seen_sources": sum(references[0].source in sources for references in segments),
            "seen_pairs": sum(any(pair in pairs for pair in references) for references in segments),
        }
        rows += [
            MetricRow(name, count, subject=subject, detail={"segments": len(segments)})
            for name, count in seen.items()
        ]
    return rows


def unseen(training: Iterable[str], test_sets: Sequence[Segments]) -> list[MetricRow]:
    """Count, for each test set of words, those with a symbol that no training source has.

    The detail names the symbols.
    """
    seen = {symbol for source in training for symbol in split("characters", source)}
    rows = []
    for position, segments in enumerate(test_sets):
        unseen_symbols: dict[str, set[str]] = {"languages": set(), "letters": set(), "tags": set()}
        concerned = 0
        for segment in segments:
            language, *symbols = split("characters", segment["source"])
            if language not in seen:
                unseen_symbols["languages"].add(language[1:-1])
            new = set(symbols) - seen
            unseen_symbols["tags"] |= {symbol[1:-1] for symbol in new if is_bracketed(symbol)}
            unseen_symbols["letters"] |= {symbol for symbol in new if not is_bracketed(symbol)}
            concerned += bool(new or language not in seen)
        detail = {
            "segments": len(segments),
            **{noun: sorted(symbols) for noun, symbols in unseen_symbols.items()},
        }
        rows.append(MetricRow("unseen", concerned, subject=str(position), detail=detail))
    return rows


def _pairs_of(segment: dict[str, Any]) -> list[Pair]:
    """Return the source with each reference."""
    references = [segment["reference"], *segment.get("more_references", [])]
    return [Pair(normalise(segment["source"]), normalise(reference)) for reference in references]
