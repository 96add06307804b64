"""Steps that prepare text: `corpus`, `test_set`, `overlap`, `subwords`, `encode`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from creamtea.contract.step import MetricRow, StepContext, StepParams, StepResult
from creamtea.errors import StepError
from creamtea.methods.family import implementation
from creamtea.steps.texts import CorpusParams, OverlapParams, SubwordsParams, TestSetParams
from creamtea.wording import counted
from creamtea_workers.corpora import subwords
from creamtea_workers.corpora.files import FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared
from creamtea_workers.corpora.text import iterate_lines, normalise, read_jsonl, write_jsonl, write_lines
from creamtea_workers.corpora.tokens import SPLITS, RowWriter

Segments = Sequence[dict[str, Any]]  # lines of segments.jsonl
PART = 1 << 14  # lines to encode at a time


def prepare_corpus(context: StepContext[CorpusParams]) -> StepResult:
    """Normalise, filter and count the training and development text.

    The corpus is written pair by pair, because it need not fit into memory.
    """
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


def prepare_test_set(context: StepContext[TestSetParams]) -> StepResult:
    """Write the segments of a test set with their idioms; they are never filtered."""
    spec = context.params.test_set
    prepared: Prepared = implementation(spec).prepare_test_set(spec, context)
    if not prepared.segments:  # later steps rely on it
        raise StepError("the test set has no segments: nothing can be translated or measured")
    lines = [{"index": index, **segment._asdict()} for index, segment in enumerate(prepared.segments)]
    for line, group in zip(lines, prepared.groups, strict=False):  # only words have groups
        line["group"] = group
    for line, references in zip(lines, prepared.more_references, strict=False):
        line["more_references"] = list(references)
    if prepared.detokenised:
        lines = [{**line, "detokenised": True} for line in lines]
    write_jsonl(context.output / "segments.jsonl", lines)
    context.progress(1, 1)
    metrics = {
        "segments": len(prepared.segments),
        "idioms": sum(len({idiom["name"] for idiom in segment.idioms}) for segment in prepared.segments),
        **prepared.counts,
    }
    rows = [MetricRow(name, value) for name, value in metrics.items()]
    return StepResult(rows, facts=dict(prepared.counts))


def measure_overlap(context: StepContext[OverlapParams]) -> StepResult:
    """Count test and development sentences in the training text.

    The training text is read once, and only the other sentences are held in memory.
    """
    corpus = context.input("corpus")
    test_sets = [read_jsonl(folder / "segments.jsonl") for folder in context.inputs("test_sets")]
    training, development = (
        map(Pair, *(iterate_lines(corpus / f"{part}.{side}") for side in ("src", "tgt")))
        for part in ("train", "dev")
    )
    texts: dict[str, Segments] = {str(position): segments for position, segments in enumerate(test_sets)}
    texts["dev"] = [{"source": pair.source, "reference": pair.target} for pair in development]
    rows = overlap(training, texts)
    if context.params.symbols:
        rows += unseen(iterate_lines(corpus / "train.src"), test_sets)
    context.progress(1, 1)
    return StepResult(metrics=rows)


def overlap(training: Iterable[Pair], texts: Mapping[str, Segments]) -> list[MetricRow]:
    """Count, for each text, sources that are in the training text: alone, and with one of their references.

    All text is normalised, like the training text. The rows' subjects are the keys of `texts`.
    """
    normalised = {
        subject: [
            [
                Pair(normalise(segment["source"]), normalise(reference))
                for reference in (segment["reference"], *segment.get("more_references", []))
            ]
            for segment in segments
        ]
        for subject, segments in texts.items()
    }
    searched = {pairs[0].source for segments in normalised.values() for pairs in segments}
    sources: set[str] = set()
    pairs: set[Pair] = set()
    for pair in training:
        if pair.source in searched:
            sources.add(pair.source)
            pairs.add(pair)
    rows = []
    for subject, segments in normalised.items():
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
    """Count, for each test set of words, the words with a symbol that no training source has.

    The detail names the symbols.
    """
    seen = {symbol for source in training for symbol in subwords.split("characters", source)}
    rows = []
    for position, segments in enumerate(test_sets):
        unseen_symbols: dict[str, set[str]] = {"languages": set(), "letters": set(), "tags": set()}
        concerned = 0
        for segment in segments:
            language, *symbols = subwords.split("characters", segment["source"])
            if language not in seen:
                unseen_symbols["languages"].add(language[1:-1])
            new = set(symbols) - seen
            unseen_symbols["tags"] |= {symbol[1:-1] for symbol in new if subwords.is_bracketed(symbol)}
            unseen_symbols["letters"] |= {symbol for symbol in new if not subwords.is_bracketed(symbol)}
            concerned += bool(new or language not in seen)
        detail = {
            "segments": len(segments),
            **{noun: sorted(symbols) for noun, symbols in unseen_symbols.items()},
        }
        rows.append(MetricRow("unseen", concerned, subject=str(position), detail=detail))
    return rows


def make_subwords(context: StepContext[SubwordsParams]) -> StepResult:
    """Train a joint SentencePiece model on the training text, or list a vocabulary for each side."""
    spec = context.params.subwords
    corpus = context.input("corpus")
    if not spec.joint:
        both = subwords.Vocabularies.of_corpus(corpus, spec)
        both.save(context.output / subwords.VOCABULARIES_FILE)
        sizes = {"vocabulary_size": both.size, "source_vocabulary_size": both.source_vocabulary.size}
        return StepResult(metrics=[MetricRow(name, size) for name, size in sizes.items()])
    context.progress(0, 1, f"{spec.kind}, vocabulary {spec.vocabulary}")
    out = context.output / subwords.SUBWORDS_FILE
    lines = subwords.train_subwords([corpus / "train.src", corpus / "train.tgt"], spec, out)
    context.progress(1, 1)
    model = subwords.SubwordModel.load(out)
    sizes = {"vocabulary_size": model.size, "sampled_pairs": lines // 2}
    characters = sum(len(piece) == 1 for piece in model.pieces(range(model.size)))
    return StepResult(
        metrics=[MetricRow(name, size) for name, size in sizes.items()], facts={"characters": characters}
    )


def encode_texts(context: StepContext[StepParams]) -> StepResult:
    """Write training and development text as arrays of tokens, for all later steps."""
    corpus, model = context.input("corpus"), subwords.load_text_model(context)
    sizes = subwords.vocabulary_sizes(model)
    metrics = []
    for text in SPLITS:
        for side, encode, size in (
            ("src", model.encode_lines, sizes[0]),
            ("tgt", model.encode_targets, sizes[1]),
        ):
            name = f"{text}.{side}"
            writer = RowWriter(context.output, name, size)
            lines, done = iterate_lines(corpus / name), 0
            while part := list(islice(lines, PART)):
                context.progress(0, 1, f"{name}: {counted(done, 'line')}")
                writer.write(encode(part, context.cpus))
                done += len(part)
            writer.close()
            metrics.append(MetricRow("tokens", writer.written, subject=name))
    context.progress(1, 1)
    return StepResult(metrics=metrics)
