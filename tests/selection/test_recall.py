"""The recall step by hand-computed cases."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import step_files
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import t
from step_context import Context
from step_files import Folders, metric

from creamtea.contract.step import StepResult
from creamtea.steps.systems import DECODE, RECALL
from creamtea_workers.corpora.subwords import SubwordModel, word_starts
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.nvs import counts_above, nvs_logits, wanted_of, words_of
from creamtea_workers.selection.recall import (
    MAX_LISTED,
    Counted,
    RecallInputs,
    RecallTask,
    Reference,
    clusters_of,
    count_reached,
    most_first,
)

SWEEP = {"k": [1, 2], "thresholds": [0.9, 0.5, 0.1, 0.0]}
SEGMENTS: list[dict[str, Any]] = [
    {
        "source": "the cat sat",
        "reference": "the dog sat on the mat",
        "idioms": [{"name": "x", "source": [0, 3], "target": [4, 11]}],  # "dog sat"
    },
    {"source": "a dog", "reference": "she took the cake", "idioms": []},
    {"source": "", "reference": "", "idioms": []},
]


def test_the_recall_of_a_lexicon_counts_its_frequent_subwords(folders: Folders) -> None:
    path = folders["align"][0] / "lexicon.npz"
    subwords = step_files.subwords_of(folders)
    wanted = np.array(subwords.encode("she took the cake"), dtype=np.int32)
    before = run(folders, {"kind": "lexicon", "k": 2})
    replace(Lexicon.load(path), frequent=wanted).save(path)
    assert run(folders, {"kind": "lexicon", "k": 2}) == before
    after = run(folders, {"kind": "lexicon", "k": 2, "frequent": len(wanted)})
    recalls = [metric(result, "recall", "sentence").value for result in (before, after)]
    assert recalls[0] < recalls[1]
    empty = len({EOS, *wanted.tolist()})  # the last sentence has these alone
    sizes = [metric(result, "selected_size").value for result in (before, after)]
    assert sizes[0] < sizes[1] <= sizes[0] + empty - 1


def lexicon_of(rows: dict[int, list[int]], size: int) -> Lexicon:
    starts = np.cumsum([0, *(len(rows.get(s, [])) for s in range(size))])
    targets = np.array([t for s in range(size) for t in rows.get(s, [])], dtype=np.int32)
    return Lexicon(starts.astype(np.int64), targets, np.ones(len(targets), dtype=np.float32))


def reference(sentence: list[int], **idioms: list[int]) -> Reference:
    return Reference(np.array(sentence), {name: np.array(ids) for name, ids in idioms.items()})


def test_lexicon_counts_by_hand() -> None:
    def counted(lexicon: Lexicon, ks: list[int], frequent: int = 0) -> Any:
        wanted = reference([10, 12, 25], x=[12], y=[10, 25])
        return count_reached([lexicon.select([5, 6, 6], k, frequent) for k in ks], wanted)

    lexicon = lexicon_of({5: [10, 11, 12], 6: [20, 10]}, 30)
    counts = counted(lexicon, [1, 2, 3])
    # k = 1: {3, 10, 20}; k = 2: {3, 10, 11, 20}; k = 3: {3, 10, 11, 12, 20}
    # size, sentence, any idiom, x, y
    assert counts.tolist() == [[3, 1, 1, 0, 1], [4, 1, 1, 0, 1], [5, 2, 2, 1, 1]]
    lexicon = replace(lexicon, frequent=np.array([25, 10, 12], dtype=np.int32))
    counts = counted(lexicon, [1, 3], frequent=2)
    assert counts.tolist() == [[4, 2, 2, 0, 2], [6, 3, 3, 1, 2]]


def test_nvs_counts_by_hand() -> None:
    class Votes:
        vocabulary_size, may_pad = 6, True
        output_weight = torch.zeros(6, 2)

        def encode(self, source: torch.Tensor) -> torch.Tensor:
            return source

        def nvs_logits(self, memory: torch.Tensor) -> torch.Tensor:
            return torch.tensor([[-9.0, -9.0, -9.0, -9.0, 3.0, 0.5]])  # σ: 0.95, 0.62 for ids 4 and 5

    ((position, row),) = nvs_logits(Votes(), [[4]])  # type: ignore[arg-type]
    wanted = wanted_of(row, reference([0, 4, 5], x=[5]))
    counts = counts_above([logit(threshold) for threshold in (0.99, 0.9, 0.5, 0.0)], [row, *wanted])
    assert position == 0
    assert counts.tolist() == [[1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 1, 1], [6, 3, 1, 1]]


@pytest.fixture
def subwords(folders: Folders) -> SubwordModel:
    return step_files.subwords_of(folders)


def test_an_idioms_subwords_are_those_that_overlap_its_span(subwords: SubwordModel) -> None:
    text = "the dog sat"
    found = Reference.of(subwords, text, [{"name": "x", "target": span} for span in ((4, 7), (9, 10))])
    expected = {o.id for o in subwords.offsets(text) if (o.start < 7 and o.end > 4) or o.start <= 9 < o.end}
    assert found.idiom.tolist() == sorted(expected)
    assert found.sentence.tolist() == sorted(set(subwords.encode(text)))
    assert EOS not in found.sentence
    assert Reference.of(subwords, text, []).idiom.tolist() == []
    assert Reference.of(subwords, text, [{"name": "x", "target": (3, 3)}]).idioms == {}


def test_an_unknown_character_has_all_of_its_bytes() -> None:
    """As in the vocabularies of imported models that fall back to bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog sat", "the cat sat"]),
        model_writer=model,
        vocab_size=280,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def subwords_of(characters: str) -> set[int]:
        return {processor.piece_to_id(f"<0x{byte:02X}>") for byte in characters.encode()}

    text = "the狐é dog🦊"
    for span, characters in (((3, 4), "狐"), ((3, 5), "狐é"), ((4, 5), "é"), ((9, 10), "🦊")):
        found = Reference.of(SubwordModel(processor), text, [{"name": "x", "target": span}])
        assert set(found.idiom.tolist()) == subwords_of(characters)
    assert subwords_of("狐é🦊") < set(found.sentence.tolist())


def test_a_span_in_a_text_as_given_is_that_of_the_normalised_text(subwords: SubwordModel) -> None:
    composed = Reference.of(subwords, "thé dog sat", [{"name": "x", "target": (4, 7)}])
    given = Reference.of(subwords, "the\u0301▁dog sat", [{"name": "x", "target": (5, 8)}])
    assert given.sentence.tolist() == composed.sentence.tolist()
    assert given.idiom.tolist() == composed.idiom.tolist() != []


def test_entries_of_one_name_are_one_idiom(subwords: SubwordModel) -> None:
    text = "the dog sat"
    parts = [
        {"name": "x", "target": (0, 3)},
        {"name": "y", "target": (4, 7)},
        {"name": "x", "target": (8, 11)},
    ]
    found = Reference.of(subwords, text, parts)
    expected = {
        "x": {o.id for o in subwords.offsets(text) if o.start < 3 or o.end > 8},
        "y": {o.id for o in subwords.offsets(text) if o.start < 7 and o.end > 4},
    }
    assert {name: set(ids.tolist()) for name, ids in found.idioms.items()} == expected
    assert found.idiom.tolist() == sorted(expected["x"] | expected["y"])


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SEGMENTS)


def run(folders: Folders, selection: dict[str, Any], sweep: dict[str, Any] = SWEEP) -> StepResult:
    return Context(RECALL, {"selection": selection, "sweep": sweep}, folders).run()


def run_on(folders: Folders, segments: list[dict[str, Any]], k: int = 2) -> StepResult:
    """With a lexicon, on another test set."""
    test_set = step_files.segments_folder(folders["test_set"][0].parent, segments, "other")
    return run({**folders, "test_set": [test_set]}, {"kind": "lexicon", "k": k})


def allowed(subwords: SubwordModel, source: str) -> set[int]:
    """What the lexicon selects at k = 2."""
    return {EOS} | {t % subwords.size for s in subwords.encode(source) for t in (s, s + 1)}


def test_the_recall_of_a_lexicon_is_micro_averaged(folders: Folders) -> None:
    result = run(folders, {"kind": "lexicon", "k": 2})
    subwords = step_files.subwords_of(folders)
    reached, possible, sizes = [0, 0], [0, 0], []
    for segment in SEGMENTS:
        ids = allowed(subwords, segment["source"])
        wanted = Reference.of(subwords, segment["reference"], segment["idioms"])
        sizes.append(len(ids))
        for scope, unique in enumerate((wanted.sentence, wanted.idiom)):
            reached[scope] += len(set(unique.tolist()) & ids)
            possible[scope] += len(unique)
    assert metric(result, "selected_size").value == pytest.approx(np.mean(sizes))
    for scope, name in enumerate(("sentence", "idiom")):
        row = metric(result, "recall", name)
        assert row.value == pytest.approx(reached[scope] / possible[scope])
        assert row.low <= row.value <= row.high
    assert metric(result, "recall", "sentence").detail["segments"] == 2
    points = [p for p in result.points if p.series == "recall_sentence"]
    assert [p.label for p in points] == ["k=1", "k=2"]
    assert points[1].x == pytest.approx(np.mean(sizes))
    assert points[1].y == pytest.approx(reached[0] / possible[0])


@pytest.mark.parametrize("kind", ["sentence", "word"])
def test_the_recall_of_nvs_is_that_of_its_sets(folders: Folders, kind: str) -> None:
    spec = {"kind": "nvs", "threshold": 0.5, "context": kind}
    result = run(folders, spec)
    subwords = step_files.subwords_of(folders)
    model = step_files.model_of(folders)
    starts = word_starts(subwords)
    reached, possible, sizes = 0, 0, []
    for segment in SEGMENTS:
        source = subwords.encode(segment["source"])
        ids = {EOS}
        for seen in [source] if kind == "sentence" else words_of(source, starts):
            with torch.inference_mode():
                memory = model.encode(source_batch([seen], torch.device("cpu")))
                ids |= set((torch.sigmoid(model.nvs_logits(memory)[0]) > 0.5).nonzero().flatten().tolist())
        wanted = set(subwords.encode(segment["reference"]))
        reached += len(wanted & ids)
        possible += len(wanted)
        sizes.append(len(ids))
    assert metric(result, "selected_size").value == pytest.approx(np.mean(sizes))
    assert metric(result, "recall", "sentence").value == pytest.approx(reached / possible)
    points = {p.label: p for p in result.points if p.series == "recall_sentence"}
    assert set(points) == {"threshold=0.9", "threshold=0.5", "threshold=0.1", "threshold=0"}
    if kind == "sentence":  # the empty sentence has no words
        assert points["threshold=0"].x == subwords.size
    assert points["threshold=0"].y == 1.0
    xs = [p.x for p in result.points if p.series == "recall_idiom"]
    assert xs == sorted(xs)


@pytest.mark.parametrize(
    "spec", [{"kind": "lexicon", "k": 2}, {"kind": "nvs", "threshold": 0.5}], ids=["lexicon", "nvs"]
)
def test_sentences_of_a_batch_share_what_any_of_them_selects(folders: Folders, spec: dict[str, Any]) -> None:
    subwords = step_files.subwords_of(folders)
    sets = step_files.selected_alone(folders, spec, [segment["source"] for segment in SEGMENTS])
    batches = [[2, 1], [0]]  # the two shortest together
    unions = {n: set().union(*(sets[m] for m in batch)) for batch in batches for n in batch}
    wanted = [set(subwords.encode(segment["reference"])) for segment in SEGMENTS]
    result = run(folders, spec, {**SWEEP, "batch": 2})
    points = {point.label: point for point in result.points if point.series == "recall_batch"}
    point = points["k=2" if spec["kind"] == "lexicon" else "threshold=0.5"]
    assert point.x == pytest.approx(np.mean([len(unions[n]) for n in range(3)]))
    reached = sum(len(wanted[n] & unions[n]) for n in range(3))
    assert point.y == pytest.approx(reached / sum(map(len, wanted)))
    assert not [point for point in run(folders, spec).points if point.series == "recall_batch"]


def test_the_recall_of_a_system_is_of_its_precision(folders: Folders) -> None:
    """What the head selects that decoding asks, at a threshold between its logits in fp32 and in bf16."""
    model = step_files.model_of(folders)
    subwords = step_files.subwords_of(folders)
    source = source_batch([subwords.encode(SEGMENTS[0]["source"])], torch.device("cpu"))
    with torch.inference_mode():
        exact = model.nvs_logits(model.encode(source))[0]
        rounded = (half := prepare(model, "bf16")).nvs_logits(half.encode(source))[0].float()
    most = int((exact - rounded).abs().argmax())
    nvs = {"kind": "nvs", "threshold": torch.sigmoid((exact + rounded)[most] / 2).item()}
    params = {"selection": nvs, "sweep": SWEEP, "precision": "bf16"}
    search = {"selection": nvs, "search": {"kind": "greedy"}, "precision": "bf16", "batch_size": 1}
    size = metric(Context(RECALL, params, folders).run(), "selected_size").value
    assert size == metric(Context(DECODE, search, folders).run(), "selected_size").value
    assert size != metric(run(folders, nvs), "selected_size").value


def test_the_full_vocabulary_reaches_everything(folders: Folders) -> None:
    result = run(folders, {"kind": "full"})
    assert metric(result, "recall", "sentence").value == metric(result, "recall", "idiom").value == 1.0
    assert metric(result, "recall_macro", "idiom").value == 1.0
    assert metric(result, "selected_size").value == step_files.vocabulary_size(folders["subwords"][0])


def idiom(name: str, source: list[int], target: list[int], **more: Any) -> dict[str, Any]:
    return {"name": name, "source": source, "target": target, **more}


CAKE = {"source": "she took the cake", "reference": "it rains cats and dogs"}
PASS_AND_CAKE = [
    idiom("pass", [0, 3], [0, 2]),
    idiom("cake", [4, 8], [3, 8]),
    idiom("cake", [9, 12], [18, 22]),
]
IDIOMS: list[dict[str, Any]] = [
    # "pass" three times, "cake" once: a micro-average is mostly about "pass"
    {"source": "the cat", "reference": "the dog", "idioms": [idiom("pass", [0, 3], [0, 7])]},
    {"source": "a dog", "reference": "the dog", "idioms": [idiom("pass", [0, 1], [4, 7])]},
    {**CAKE, "idioms": PASS_AND_CAKE},
]


def test_the_macro_average_is_the_mean_over_distinct_idioms(folders: Folders) -> None:
    result = run_on(folders, IDIOMS)
    subwords = step_files.subwords_of(folders)
    reached: dict[str, int] = {"pass": 0, "cake": 0}
    possible: dict[str, int] = {"pass": 0, "cake": 0}
    for segment in IDIOMS:
        ids = allowed(subwords, segment["source"])
        for name in {idiom["name"] for idiom in segment["idioms"]}:
            spans = [idiom["target"] for idiom in segment["idioms"] if idiom["name"] == name]
            wanted = {
                o.id
                for o in subwords.offsets(segment["reference"])
                if any(o.start < end and start < o.end for start, end in spans)
            }
            reached[name] += len(wanted & ids)
            possible[name] += len(wanted)
    row = metric(result, "recall_macro", "idiom")
    shares = [reached[name] / possible[name] for name in possible]
    assert row.value == pytest.approx(np.mean(shares))
    assert row.value != pytest.approx(metric(result, "recall", "idiom").value)
    assert row.detail["idioms"] == metric(result, "recall", "idiom").detail["idioms"] == 2
    mean = np.mean(shares)
    half = t.ppf(0.975, 1) * np.std(shares, ddof=1) / np.sqrt(2) / (mean * (1 - mean))  # of the log odds
    assert (row.low, row.high) == pytest.approx((expit(logit(mean) - half), expit(logit(mean) + half)))


WHOLE = {"source": "the cake", "target": "the dog sat on the mat"}
WORDS: list[dict[str, Any]] = [
    {**CAKE, "idioms": [idiom("cake", [4, 8], [3, 8], words=WHOLE)]},
    # its words are those of the spans
    {"source": "a dog", "reference": "the dog", "idioms": [idiom("dog", [2, 5], [4, 7])]},
]


def test_idioms_are_asked_by_their_own_words(folders: Folders) -> None:
    result = run_on(folders, WORDS)
    subwords = step_files.subwords_of(folders)
    reached, possible = [], []
    for source, target in (("the cake", "the dog sat on the mat"), ("dog", "dog")):
        ids = allowed(subwords, source)
        wanted = set(subwords.encode(target))
        reached.append(len(wanted & ids))
        possible.append(len(wanted))
    row = metric(result, "recall", "idiom_words")
    assert row.value == pytest.approx(sum(reached) / sum(possible))
    assert row.detail["clusters"] == row.detail["idioms"] == 2
    shares = [own / all_ for own, all_ in zip(reached, possible, strict=True)]
    assert metric(result, "recall_macro", "idiom_words").value == pytest.approx(np.mean(shares))
    point = {p.label: p for p in result.points if p.series == "recall_idiom_words"}["k=2"]
    assert (point.x, point.y) == (metric(result, "selected_size").value, row.value)
    assert metric(result, "recall", "idiom").detail["unique_subwords"] != row.detail["unique_subwords"]


def test_missed_subwords_are_listed_by_distinct_idiom(folders: Folders) -> None:
    subwords = step_files.subwords_of(folders)
    pairs = [
        ("dog", "dog"),
        ("the cake", "the dog sat on the mat"),
        ("a dog", "the cat"),
        ("cat", "cats cats"),
    ]
    named = [{"name": s, "source": [], "target": [], "words": {"source": s, "target": t}} for s, t in pairs]
    segments = [{"source": "a", "reference": "the", "idioms": [idiom]} for idiom in [*named, *named]]
    result = run_on(folders, segments)
    expected = []
    for source, target in pairs:
        selected = allowed(subwords, source)
        ids = subwords.encode(target)
        absent = subwords.pieces([id_ for id_ in dict.fromkeys(ids) if id_ not in selected])
        idiom = {"source": source, "target": target, "subwords": subwords.pieces(ids), "missed": absent}
        expected += [idiom] if absent else []
    expected.sort(key=lambda idiom: -len(idiom["missed"]))
    assert 1 < len(expected) < len(pairs)  # of "dog" nothing is missed
    shown = metric(result, "recall", "idiom_words").detail["missed"]
    assert shown == {"count": len(expected), "of": len(pairs), "idioms": expected}


def test_by_hand_which_subwords_a_lexicon_misses(folders: Folders) -> None:
    """Source subword s selects s alone at k = 1: what the idiom and its translation share is not missed."""
    words = {"source": "the cat", "target": "the mat"}
    idiom = {"name": "x", "source": [], "target": [], "words": words}
    result = run_on(folders, [{"source": "a", "reference": "the", "idioms": [idiom]}], k=1)
    subwords = step_files.subwords_of(folders)
    assert subwords.pieces(subwords.encode("the cat")) == ["▁the", "▁cat"]
    listed = {**words, "subwords": ["▁the", "▁m", "at"], "missed": ["▁m", "at"]}
    found = metric(result, "recall", "idiom_words").detail["missed"]
    assert found == {"count": 1, "of": 1, "idioms": [listed]}


@given(st.lists(st.integers(0, 4), max_size=3 * MAX_LISTED))
def test_those_that_miss_most_are_listed_in_order(lengths: list[int]) -> None:
    idioms = [{"place": place, "missed": ["x"] * length} for place, length in enumerate(lengths)]
    listed = most_first("missed", idioms)
    assert (listed["count"], listed["of"]) == (sum(map(bool, lengths)), len(lengths))
    keys = [(-len(idiom["missed"]), idiom["place"]) for idiom in listed["idioms"]]
    every = sorted((-length, place) for place, length in enumerate(lengths) if length)
    assert keys == every[:MAX_LISTED]


def test_without_idioms_there_is_a_note_and_no_number(folders: Folders) -> None:
    result = run_on(folders, SEGMENTS[1:], k=1)
    row = metric(result, "recall", "idiom")
    assert row.value is None
    assert row.note == "no segment of this test set has an annotated idiom"
    assert {p.series for p in result.points} == {"recall_sentence"}


# ---------------------------------------------------------------- intervals over idioms


def of_idioms(**idioms: list[int]) -> Reference:
    return Reference(np.array([]), {name: np.array(ids) for name, ids in idioms.items()})


def scopes(idioms: list[Reference], reached: list[np.ndarray]) -> dict[str, Counted]:
    """The scopes of idioms by themselves, with the counts of what is reached of them."""
    subwords: Any = None
    task = RecallTask(RecallInputs(subwords, [], []), RecallInputs(subwords, [], idioms))
    return task.scopes([[], [np.array([[0, *own]]) for own in reached]], 0)


def test_occurrences_of_an_idiom_are_no_new_observations() -> None:
    """Repeated ten times each, with what is reached of it, an idiom's recall is no better known."""
    references = [of_idioms(**{name: [1, 2, 3]}) for name in "abcdefgh"]
    reached = [np.array([0, n % 4, n % 4]) for n in range(8)]
    other = [np.array([0, n % 3, n % 3]) for n in range(8)]
    for scope in ("idiom_words", "idiom_words_macro"):
        once, ten = (
            [scopes(references * times, counts * times)[scope] for counts in (reached, other)]
            for times in (1, 10)
        )
        for make in (
            lambda pair: pair[0].metric("recall", "", {}),
            lambda pair: pair[0].less(pair[1], "difference", "", {}),
        ):
            assert make(ten) == make(once)


def test_segments_with_an_idiom_in_common_are_together() -> None:
    names = [["a"], ["b"], ["a", "c"], ["d"], ["c", "e"], ["b"], []]
    found = clusters_of(names)
    together = {frozenset(n for n, label in enumerate(found) if label == one) for one in found}
    assert together == {frozenset({0, 2, 4}), frozenset({1, 5}), frozenset({3}), frozenset({6})}
    assert clusters_of([]) == []


def test_of_one_idiom_nothing_is_known_of_others() -> None:
    one = [of_idioms(a=[1, 2])]
    counted = scopes(one, [np.array([0, 1, 1])])
    micro, macro = (counted[scope].metric("recall", "", {}) for scope in ("idiom_words", "idiom_words_macro"))
    assert (micro.value, micro.low, micro.high) == (0.5, 0.0, 1.0)
    assert (macro.value, macro.low, macro.high) == (0.5, 0.0, 1.0)


def test_idioms_that_are_all_alike_have_no_difference_to_judge_by() -> None:
    two = [of_idioms(**{name: [1, 2]}) for name in "ab"]
    every, none = (scopes(two, [np.array([0, n, n])] * 2) for n in (2, 0))
    for scope in ("idiom_words", "idiom_words_macro"):
        found = every[scope].less(none[scope], "difference", "", {})
        assert (found.value, found.low, found.detail["p_two_sided"]) == (1.0, None, None)
        assert found.note == "all 2 idioms have the same value: no spread to judge by"
        whole = every[scope].metric("recall", "", {})
        assert (whole.low < 0.5, whole.high) == (True, 1.0)
