"""Step `test_set`: the segments of a test set with their idioms, never filtered."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.study.spec import (
    FilesTestSet,
    Ibm3Corpus,
    Ibm3TestSet,
    ItdsIdioms,
    SyntheticCorpus,
    SyntheticTestSet,
    TestSet,
)
from creamtea_workers.corpora.counted import Counts, Translator
from creamtea_workers.corpora.files import Files, Pair, Segment, read_test_set, same_length
from creamtea_workers.corpora.idioms import annotate
from creamtea_workers.corpora.itds import read_info
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.synthetic import unseen_pairs
from creamtea_workers.corpora.text import normalise, read_lines, write_jsonl

_TEST_SET: TypeAdapter[TestSet] = TypeAdapter(TestSet)
Prepared = tuple[list[Segment], dict[str, int]]  # and counts that only some kinds have


def run(context: StepContext) -> StepResult:
    spec = _TEST_SET.validate_python(context.params["test_set"])
    if isinstance(spec, SyntheticTestSet):
        segments, counts = _synthetic(spec, context)
    elif isinstance(spec, Ibm3TestSet):
        segments, counts = _ibm3(spec, context)
    else:
        segments, counts = _files(spec, context)
    write_jsonl(
        context.output / "segments.jsonl",
        ({"index": index, **segment._asdict()} for index, segment in enumerate(segments)),
    )
    context.progress(1, 1)
    metrics = {
        "segments": len(segments),
        "idioms": sum(len({idiom["name"] for idiom in segment.idioms}) for segment in segments),
        **counts,
    }
    return StepResult([MetricRow(name, value) for name, value in metrics.items()], facts=counts)


def _synthetic(spec: SyntheticTestSet, context: StepContext) -> Prepared:
    corpus = SyntheticCorpus.model_validate(context.params["corpus"])
    segments = [
        Segment(pair.source, pair.target, [idiom._asdict() for idiom in pair.idioms])
        for pair in unseen_pairs(spec, corpus)
    ]
    return segments, {}


def _ibm3(spec: Ibm3TestSet, context: StepContext) -> Prepared:
    """Sentences for which nothing can be sampled are left out: a segment needs a reference."""
    corpus = Ibm3Corpus.model_validate(context.params["corpus"])
    files = Files(context.params, context.locations)
    sources = [normalise(line) for line in files.text(spec.source, "source", spec.tokenized)[: spec.limit]]
    translator = Translator(
        Counts.load(context.input("ibm3") / "ibm3.npz"),
        SubwordModel.load(context.input("subwords") / "subwords.model"),
        corpus.gamma,
    )
    references = translator.translate_all(
        sources, f"{spec.seed} test", lambda done, total: context.progress(done, total, "sampling")
    )
    segments = [Segment(s, r, []) for s, r in zip(sources, references, strict=True) if r is not None]
    if not segments:
        raise StepError(f"no line of {spec.source} gets a translation at temperature {corpus.gamma}")
    return segments, {"no_translation": len(sources) - len(segments)}


def _files(spec: FilesTestSet, context: StepContext) -> Prepared:
    files = Files(context.params, context.locations)
    segments = read_test_set(spec, files)
    return (segments, {}) if spec.itds is None else _itds(segments, spec, spec.itds, context)


def _itds(
    segments: Sequence[Segment], spec: FilesTestSet, itds: ItdsIdioms, context: StepContext
) -> Prepared:
    language: str = context.params["languages"]["source"]
    files = Files(context.params, context.locations)
    lines = files.lines(itds.info)
    same_length({spec.source: files.lines(spec.source), itds.info: lines})
    corpus = context.input("corpus")
    training = zip(read_lines(corpus / "train.src"), read_lines(corpus / "train.tgt"), strict=True)
    annotated = annotate(
        segments,
        read_info(lines[: len(segments)], itds.info, language),
        (Pair(*pair) for pair in training),
        language,
        lambda done, total: context.progress(done, total, "aligning words"),
    )
    return annotated.segments, {"found": annotated.found, "aligned": annotated.aligned}
