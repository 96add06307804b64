"""The align step, tables in fast_align's format, and eflomal's tool, for which a script stands."""

import dataclasses
import gzip
import hashlib
import math
import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import step_files
from hypothesis import given
from hypothesis import strategies as st
from limits import wait_until
from step_context import Context

from creamtea.contract.step import StepResult
from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.steps.texts import ALIGN, ENCODE, SHORTLIST
from creamtea_workers.corpora import text
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import UserFile, write_lines
from creamtea_workers.corpora.tokens import Rows, Shard
from creamtea_workers.selection import external_aligners
from creamtea_workers.selection.aligner import Lexicon, TranslationTable, train_aligner
from creamtea_workers.selection.external_aligners import (
    align_with_eflomal,
    coverage,
    read_table,
)


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
    for line in step_files.TEXT[:4]:
        source = subwords_of(context).encode(line)
        assert imported.select(source, 1).tolist() == own.select(source, 1).tolist()


def test_a_table_without_the_texts_subwords_is_refused(context: Context) -> None:
    give_table(context, own_table(context)[:30])
    with pytest.raises(StepError, match=r"lex\.tsv has a row for only .* of the training text"):
        run(context, {"aligner": "table", "table": "lex.tsv"})


def test_eflomal_that_is_not_installed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(context.output / "python"))
    with pytest.raises(StepUnavailable, match="pip install eflomal"):
        run(context, {"aligner": "eflomal"})


# ---------------------------------------------------------------- tables of other aligners


PIECES = ["<pad>", "<unk>", "<s>", "</s>", *"abcdefghij"]
A, B, C = 4, 5, 6


class Pieces:
    size = len(PIECES)
    source_vocabulary = None

    def pieces(self, ids: list[int]) -> list[str]:
        return [PIECES[id_] for id_ in ids]

    source_pieces = pieces


def user_file(path: Path, content: str, packed: bool = False) -> UserFile:
    data = content.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return UserFile("tables/lex.tsv", path, hashlib.sha256(data).hexdigest())


@pytest.fixture
def read(tmp_path: Path):  # type: ignore[no-untyped-def]
    def read_text(content: str, packed: bool = False) -> tuple[TranslationTable, int, int]:
        return read_table(user_file(tmp_path / "lex.tsv", content, packed), Pieces())  # type: ignore[arg-type]

    return read_text


def entries(table: TranslationTable) -> dict[tuple[int, int], float]:
    keys = zip(table.source.tolist(), table.target.tolist(), strict=True)
    return dict(zip(keys, table.probability.tolist(), strict=True))


# unsorted; <eps> is NULL; fast_align prints six digits, and -inf where a probability is 0
SMALL = "b\tc\t-0.693147\n<eps>\ta\t-1.38629\na\tb\t-0\nb\ta\t-0.693147\na\tc\t-inf\n"


@pytest.mark.parametrize("content", [SMALL, SMALL[:-1], SMALL.replace("\n", "\r\n")], ids=["", "cut", "crlf"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("part", [1, 7, 1 << 20])
def test_a_table_is_read_in_any_order(  # type: ignore[no-untyped-def]
    read, content: str, packed: bool, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_PART", part)
    table, lines, skipped = read(content, packed)
    expected = {(B, C): 0.5, (len(PIECES), A): 0.25, (A, B): 1.0, (B, A): 0.5, (A, C): 0.0}
    assert entries(table) == pytest.approx(expected, rel=1e-5)
    assert list(entries(table)) == sorted(expected)
    assert (lines, skipped) == (5, 0)


def test_the_built_in_aligners_table_survives_the_format(read) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(2)
    pairs = [[rng.integers(4, 14, size=rng.integers(1, 7)).tolist() for _ in range(60)] for _ in range(2)]
    own = train_aligner([Shard.of(*pairs)], len(PIECES), 4).table
    triples = list(zip(own.source.tolist(), own.target.tolist(), own.probability.tolist(), strict=True))
    names = [*PIECES, "<eps>"]
    lines = [
        f"{names[source]}\t{names[target]}\t{math.log(p) if p else -math.inf:g}\n"
        for source, target, p in triples
    ]
    rng.shuffle(lines)
    imported, *_ = read("".join(lines))
    assert entries(imported) == pytest.approx({(s, t): p for s, t, p in triples}, rel=1e-4, abs=1e-12)
    ours, theirs = (Lexicon.build(each, 1000) for each in (own, imported))
    for id_ in range(4, 14):
        for k in (1, 3, 10):
            assert ours.select([id_], k).tolist() == theirs.select([id_], k).tolist()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a b -1", r"'a b -1' is not a line of fast_align's table"),
        ("a\tb", r"'a\\tb' is not a line"),
        ("a\tb\t-1\t3", r"'a\\tb\\t-1\\t3' is not a line"),
        ("a\tb\tlow", r"'a\\tb\\tlow' is not a line"),
        ("", r"'' is not a line"),
        ("a\tb\t0.31", r"0\.31 is not the logarithm of a probability"),
        ("a\tb\tnan", r"nan is not the logarithm"),
        ("a\tb\tinf", r"inf is not the logarithm"),
        ("x" * 200, r"'x{60}…' is not a line"),
    ],
)
def test_a_line_in_another_format_is_named(read, line: str, found: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StepError, match=rf"^tables/lex\.tsv, line 3: {found}"):
        read(f"a\tb\t-1\na\tc\t-1\n{line}\nb\tc\t-1\n")


def test_an_empty_table_is_refused(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StepError, match=r"^tables/lex\.tsv is empty: a line of fast_align's table"):
        read("")


def rows(known: int, unknown: int) -> str:
    """Lines with known pieces, then lines with unknown ones, on either side."""
    pairs = [(s, t) for s in "abcdefghij" for t in "abcdefghij"][:known]
    pairs += [("q" * (n + 1), "a") if n % 2 else ("a", "q" * (n + 1)) for n in range(unknown)]
    return "".join(f"{source}\t{target}\t-7\n" for source, target in pairs)


def test_a_few_unknown_pieces_are_passed_over(read) -> None:  # type: ignore[no-untyped-def]
    table, lines, skipped = read(rows(95, 5))
    assert (lines, skipped, len(table.source)) == (100, 5, 95)


def test_a_table_of_other_subwords_is_refused(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StepError, match=r"6 of 100 lines .* 14 subwords \(first: 'q' in line 95\)"):
        read(rows(94, 6))


@pytest.mark.parametrize("piece", ["<pad>", "<s>", "</s>", "<eps>"])
def test_what_no_text_has_is_no_target(read, piece: str) -> None:  # type: ignore[no-untyped-def]
    assert read(rows(99, 0) + f"a\t{piece}\t-7\n")[2] == 1


def test_a_pair_named_twice_is_refused(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StepError, match=r"^tables/lex\.tsv names the pair 'a c' more than once"):
        read("a\tc\t-1\na\tb\t-2\na\tc\t-3\n")


def test_rows_above_1_are_refused(read) -> None:  # type: ignore[no-untyped-def]
    base_10 = "".join(f"a\t{target}\t{math.log10(0.25)}\n" for target in "abcd")
    with pytest.raises(StepError, match=r"'a' add up to 2\.19, more than 1: write natural logarithms"):
        read(base_10)


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = user_file(tmp_path / "lex.tsv", SMALL)
    file.path.write_text(SMALL.replace("-1.38629", "-2"), encoding="utf-8")
    with pytest.raises(StepError, match="has changed since the study was planned"):
        read_table(file, Pieces())  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(4, 13)), max_size=5))
def test_coverage_is_the_share_of_the_texts_subwords_with_a_row(sources: list[list[int]]) -> None:
    file = UserFile("tables/lex.tsv", Path(), "")
    some = TranslationTable(np.arange(4, 14), np.arange(4, 14), np.ones(10), len(PIECES))
    assert coverage(some, Rows.of(sources), file) == 1.0
    half = TranslationTable(np.arange(4, 9), np.arange(4, 9), np.ones(5), len(PIECES))
    words = [id_ for source in sources for id_ in source]
    share = sum(id_ < 9 for id_ in words) / len(words) if words else 1.0
    if share < external_aligners.MIN_COVERED:
        with pytest.raises(StepError, match=f"a row for only {100 * share:.1f} % of the source subwords"):
            coverage(half, Rows.of(sources), file)
    else:
        assert coverage(half, Rows.of(sources), file) == share


# ---------------------------------------------------------------- eflomal


# pairs with an empty or too long side say nothing; ids above 9 have several digits
SOURCES = [[5, 6], [], [5, 7, 5], [12], [4] * 1024, [6]]
TARGETS = [[15, 16], [9], [15, 17, 18], [15], [4], []]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A script as eflomal-align on the PATH, with `source` and `target` (lines of words) at hand."""

    def make(body: str) -> None:
        program = tmp_path / external_aligners.PROGRAM
        program.write_text(
            f"#!{sys.executable}\nimport os, sys, time\n"
            "arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
            "source, target = ([l.split() for l in open(arguments[s])] for s in ('-s', '-t'))\n"
            "links = open(arguments['-f'], 'w')\n" + textwrap.dedent(body),
            encoding="utf-8",
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return make


DIAGONAL = """
for f, e in zip(source, target):
    print(*(f"{i}-{i}" for i in range(min(len(f), len(e)))), file=links)
"""


WAITING = """
open({0!r} + "~", "w").write(str(os.getpid()))
os.rename({0!r} + "~", {0!r})
time.sleep(600)
"""


def test_the_table_counts_links(install) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    watched: list[int] = []
    table = align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: watched.append(1))
    found = zip(table.source.tolist(), table.target.tolist(), table.probability.tolist(), strict=True)
    # 5-15 twice, 5-18, 6-16, 7-17, 12-15
    assert list(found) == [
        (5, 15, pytest.approx(2 / 3)),
        (5, 18, pytest.approx(1 / 3)),
        (6, 16, 1.0),
        (7, 17, 1.0),
        (12, 15, 1.0),
    ]
    assert table.vocabulary_size == 20
    assert watched


def test_it_runs_with_the_steps_threads_and_without_passwords(install, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", "postgresql://u:p@h/d")
    install(
        "assert os.environ['OMP_NUM_THREADS'] == '3' and not 'CREAMTEA_DATABASE_URL' in os.environ" + DIAGONAL
    )
    align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 3, lambda: None)


def test_it_is_also_found_beside_the_interpreter(install, monkeypatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert external_aligners.find_program() == tmp_path / external_aligners.PROGRAM


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('no memory')", r"failed \(code 1\): no memory"),
        ("os.remove(arguments['-f'])", r"failed \(code 0\): it printed nothing"),
        ("print('0-0', file=links)", "links that are not of its 3 sentence pairs"),
        ("print('0-0\\n0-9\\n0-0', file=links)", "links that are not of its 3 sentence pairs"),
        ("print('0-0\\n0\\n0-0', file=links)", "links that are not of its 3 sentence pairs"),
    ],
)
def test_what_goes_wrong_is_told(install, body: str, message: str) -> None:  # type: ignore[no-untyped-def]
    install(body)
    with pytest.raises(StepError, match=message):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: None)


def test_nothing_to_align_is_an_error(install) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    with pytest.raises(StepError, match="no pair to align"):
        align_with_eflomal([Shard.of([[]], [[4]])], 20, 1, lambda: None)


def test_a_killed_program_is_explained(install) -> None:  # type: ignore[no-untyped-def]
    install("os.kill(os.getpid(), 9)")
    with pytest.raises(
        InfrastructureError, match=r"memory ran out: .* \(\d+ bytes .*memory_gb .*aligner: em"
    ):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: None)


@pytest.mark.slow
def test_a_killed_worker_leaves_no_aligner_behind(install, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pid = tmp_path / "pid"
    install(WAITING.format(str(pid)))
    caller = f"""
from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.external_aligners import align_with_eflomal
align_with_eflomal([Shard.of({SOURCES!r}, {TARGETS!r})], 20, 1, lambda: None)
"""
    process = subprocess.Popen([sys.executable, "-c", caller])
    try:
        wait_until(pid.exists)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not psutil.pid_exists(int(pid.read_text(encoding="utf-8"))))


class Cancelled(BaseException):
    pass


def test_a_cancel_ends_the_program(install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(external_aligners, "_SECONDS", 0.05)
    pid = tmp_path / "pid"
    install(WAITING.format(str(pid)))

    def watch() -> None:
        if pid.exists():
            raise Cancelled

    with pytest.raises(Cancelled):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, watch)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)
