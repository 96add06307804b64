"""Tables in fast_align's format: what is read, and what is refused with its place and the remedy."""

import gzip
import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import StepError
from creamtea_workers.corpora import text
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import Rows, Shard
from creamtea_workers.selection import external_aligners
from creamtea_workers.selection.aligner import Lexicon, TranslationTable, train_aligner
from creamtea_workers.selection.external_aligners import ImportedTable, coverage, read_table

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
    def read_text(content: str, packed: bool = False) -> ImportedTable:
        return read_table(user_file(tmp_path / "lex.tsv", content, packed), Pieces())  # type: ignore[arg-type]

    return read_text


def entries(imported: ImportedTable) -> dict[tuple[int, int], float]:
    found = imported.table
    keys = zip(found.source.tolist(), found.target.tolist(), strict=True)
    return dict(zip(keys, found.probability.tolist(), strict=True))


# unsorted; <eps> is NULL; fast_align prints six digits, and -inf where a probability is 0
SMALL = "b\tc\t-0.693147\n<eps>\ta\t-1.38629\na\tb\t-0\nb\ta\t-0.693147\na\tc\t-inf\n"


@pytest.mark.parametrize("content", [SMALL, SMALL[:-1], SMALL.replace("\n", "\r\n")], ids=["", "cut", "crlf"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("part", [1, 7, 1 << 20])
def test_a_table_is_read_in_any_order(  # type: ignore[no-untyped-def]
    read, content: str, packed: bool, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_PART", part)
    imported = read(content, packed)
    expected = {(B, C): 0.5, (len(PIECES), A): 0.25, (A, B): 1.0, (B, A): 0.5, (A, C): 0.0}
    assert entries(imported) == pytest.approx(expected, rel=1e-5)
    assert list(entries(imported)) == sorted(expected)
    assert (imported.lines, imported.skipped) == (5, 0)


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
    imported = read("".join(lines))
    assert entries(imported) == pytest.approx({(s, t): p for s, t, p in triples}, rel=1e-4, abs=1e-12)
    ours, theirs = (Lexicon.build(each, 1000) for each in (own, imported.table))
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
    imported = read(rows(95, 5))
    assert (imported.lines, imported.skipped, len(imported.table.source)) == (100, 5, 95)


def test_a_table_of_other_subwords_is_refused(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StepError, match=r"6 of 100 lines .* 14 subwords \(first: 'q' in line 95\)"):
        read(rows(94, 6))


@pytest.mark.parametrize("piece", ["<pad>", "<s>", "</s>", "<eps>"])
def test_what_no_text_has_is_no_target(read, piece: str) -> None:  # type: ignore[no-untyped-def]
    assert read(rows(99, 0) + f"a\t{piece}\t-7\n").skipped == 1


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
    some = external_aligners.TranslationTable(np.arange(4, 14), np.arange(4, 14), np.ones(10), len(PIECES))
    assert coverage(some, Rows.of(sources), file) == 1.0
    half = external_aligners.TranslationTable(np.arange(4, 9), np.arange(4, 9), np.ones(5), len(PIECES))
    words = [id_ for source in sources for id_ in source]
    share = sum(id_ < 9 for id_ in words) / len(words) if words else 1.0
    if share < external_aligners.MIN_COVERED:
        with pytest.raises(StepError, match=f"a row for only {100 * share:.1f} % of the source subwords"):
            coverage(half, Rows.of(sources), file)
    else:
        assert coverage(half, Rows.of(sources), file) == share


# ---------------------------------------------------------------- the lexicon


V = 12
EOS = 3


def table_of(entries: dict[tuple[int, int], float]) -> TranslationTable:
    keys = sorted(entries)
    return TranslationTable(
        source=np.array([source for source, _ in keys], dtype=np.int64),
        target=np.array([target for _, target in keys], dtype=np.int64),
        probability=np.array([entries[key] for key in keys], dtype=np.float64),
        vocabulary_size=V,
    )


# no mass (6, 7) and NULL (V) are not stored
TABLE = table_of({(5, 10): 0.2, (5, 9): 0.2, (5, 8): 0.6, (6, 4): 0.999, (6, 7): 1e-12, (V, 11): 1.0})


def test_no_candidates_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be 1 or more"):
        Lexicon.build(TABLE, max_k=10).select([5], k=0)


def test_a_lexicon_survives_its_file_and_the_file_is_always_the_same(tmp_path: Path) -> None:
    lexicon = Lexicon.build(TABLE, max_k=10)
    assert lexicon.entries == 4
    for name in ("one.npz", "two.npz"):
        lexicon.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    loaded = Lexicon.load(tmp_path / "one.npz")
    assert loaded.select([5, 6], k=2).tolist() == lexicon.select([5, 6], k=2).tolist()
    assert loaded.probabilities.tolist() == pytest.approx([0.6, 0.2, 0.2, 0.999])


@given(
    entries=st.dictionaries(
        st.tuples(st.integers(4, V), st.integers(4, V - 1)),
        st.sampled_from([0.0, 1e-12, 0.1, 0.25, 0.5, 1.0]),
        min_size=1,
    ),
    source=st.lists(st.integers(4, V - 1)),
    max_k=st.integers(1, 6),
    k=st.integers(1, 8),
)
def test_selection_is_that_of_plain_sorting(
    entries: dict[tuple[int, int], float], source: list[int], max_k: int, k: int
) -> None:
    expected = {EOS}
    for word in source:
        row = [(-p, target) for (s, target), p in entries.items() if s == word and p > 1e-9]
        expected |= {target for _, target in sorted(row)[: min(k, max_k)]}
    selected = Lexicon.build(table_of(entries), max_k).select(source, k)
    assert selected.tolist() == sorted(expected)
    assert selected.dtype == np.int64
