"""The align step with each of its aligners, on a small corpus."""

import dataclasses
import hashlib
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import step_files
from step_context import Context

from creamtea.contract.step import StepResult
from creamtea.errors import StepError
from creamtea.steps.texts import ALIGN, ENCODE, SHORTLIST
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import write_lines
from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.aligner import Lexicon, train_aligner


@pytest.fixture
def context(tmp_path: Path) -> Context:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
        write_lines(corpus / name, step_files.TEXT)
    folders = {"corpus": [corpus], "subwords": [step_files.subwords_folder(tmp_path)]}
    Context(ENCODE, {}, folders, tmp_path / "encode").run()
    folders["encode"] = [tmp_path / "encode"]
    return Context(ALIGN, {"alignment": {}}, folders, tmp_path / "output")


def subwords_of(context: Context) -> SubwordModel:
    return SubwordModel.load(context.input("subwords") / "subwords.model")


def run(context: Context, alignment: dict[str, Any]) -> tuple[StepResult, Lexicon]:
    context = dataclasses.replace(context, raw_params={**context.raw_params, "alignment": alignment})
    return context.run(), Lexicon.load(context.output / "lexicon.npz")


def metrics(result: StepResult) -> dict[str, float | None]:
    return {row.name: row.value for row in result.metrics}


def give_table(context: Context, lines: list[str]) -> None:
    path = context.output.parent / "lex.tsv"
    write_lines(path, lines)
    context.locations["lex.tsv"] = str(path)
    digests = {"lex.tsv": hashlib.sha256(path.read_bytes()).hexdigest()}
    context.raw_params = {**context.raw_params, "digests": digests}


def own_table(context: Context) -> list[str]:
    subwords = subwords_of(context)
    encoded = subwords.encode_lines(step_files.TEXT)
    table = train_aligner([Shard.of(encoded, encoded)], subwords.size, 3).table
    pieces = [*subwords.pieces(range(subwords.size)), "<eps>"]
    return [
        f"{pieces[source]}\t{pieces[target]}\t{math.log(p)}"
        for source, target, p in zip(table.source, table.target, table.probability, strict=True)
        if p > 0
    ]


def test_a_shortlist_is_the_lexicon_with_the_most_frequent_target_subwords(context: Context) -> None:
    _, lexicon = run(context, {})
    folders = {**context.folders, "align": [context.output]}
    shortlist = Context(SHORTLIST, {}, folders, context.output.parent / "shortlist")
    (row,) = shortlist.run().metrics
    extended = Lexicon.load(shortlist.output / "lexicon.npz")
    counts = Counter(id_ for line in step_files.TEXT for id_ in subwords_of(context).encode(line))
    expected = sorted(counts, key=lambda id_: (-counts[id_], id_))
    assert len(set(counts.values())) > 2
    assert extended.frequent.tolist() == expected
    assert row.value == len(expected)
    source = expected[-1]
    own = lexicon.select([source], 2).tolist()
    assert extended.select([source], 2).tolist() == own
    assert extended.select([source], 2, 3).tolist() == sorted({*own, *expected[:3]})
    assert extended.select([source], 2, 10**6).tolist() == sorted({*own, *expected})


def test_an_imported_table_gives_the_lexicon_of_the_aligner_that_wrote_it(context: Context) -> None:
    _, own = run(context, {"aligner": "em", "iterations": 3})
    lines = own_table(context)
    give_table(context, lines[::-1])
    result, imported = run(context, {"aligner": "table", "table": "lex.tsv"})
    assert metrics(result) == {
        "lexicon_entries": pytest.approx(own.entries, abs=2),  # some lie at the least probability
        "table_lines": len(lines),
        "table_lines_skipped": 0,
        "source_coverage": 1.0,
    }
    for text in step_files.TEXT[:4]:
        source = subwords_of(context).encode(text)
        assert imported.select(source, 1).tolist() == own.select(source, 1).tolist()


def test_a_table_without_the_texts_subwords_is_refused(context: Context) -> None:
    give_table(context, own_table(context)[:30])
    with pytest.raises(StepError, match=r"lex\.tsv has a row for only .* of the training text"):
        run(context, {"aligner": "table", "table": "lex.tsv"})
