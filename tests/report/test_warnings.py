"""Every warning of results is provoked, and every printer shows it."""

import math
import re
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import pytest
import teatime_study
from analysis_rows import row
from blocks import rows_of
from teatime_study import Build, Change, Spec

from creamtea.document.mistakes import StudyWarning
from creamtea.report.cells import NO_MARK
from creamtea.report.model import Warnings
from creamtea.report.text import code_parts
from creamtea.report.warnings import _last_gain
from creamtea.store.queries import CurvePoint

Warned = Callable[..., list[StudyWarning]]


@pytest.fixture(autouse=True)
def one_thing_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two systems of the study have the same texts and scores, which only the test of it wants."""
    monkeypatch.setattr(teatime_study, "bleu", lambda system, seed: 30.0 + ord(system[-1]) + 0.5 * seed)


@pytest.fixture
def warned(build: Build) -> Warned:
    """`warned(changes)`: the warnings of the study with its steps changed."""
    return lambda changes=None: build(changes).warnings()


def rows(**values: float) -> Change:
    return {"metrics": [row(name, value) for name, value in values.items()]}


def tokens(count: float) -> Change:
    """Of each side of the encoded training text."""
    return {"metrics": [row("tokens", count, f"train.{side}") for side in ("src", "tgt")]}


def of_seeds(place: str, change: Change) -> dict[str, Change]:
    """`place` has {} where its seed stands."""
    return {place.format(seed): change for seed in (1, 2, 3)}


def updates(count: int, stopped: str = "max_epochs") -> Change:
    facts = {"device": "cpu", "threads": 2, "training_seconds": 318.25, "stopped": stopped}
    return {**rows(updates=count), "facts": facts}


def test_good_results_give_none(build: Build) -> None:
    report = build()
    assert report.warnings() == []
    assert "warnings" not in [section.key for section in report.sections]
    # what near zero is not marked is marked here
    assert rows_of(report)["softmax-nvs"].cells["bleu"].delta.significant


@pytest.mark.parametrize(
    "before, last, higher, gain",
    [(4.0, 3.0, False, 0.25), (0.0, 0.4, True, math.inf), (0.0, 0.0, True, 0.0), (2.0, 1.0, True, -0.5)],
)
def test_the_last_gain(before: float, last: float, higher: bool, gain: float) -> None:
    points = [CurvePoint(1.0, before, ""), CurvePoint(2.0, last, "")]
    assert _last_gain(points, higher) == pytest.approx(gain)


@pytest.mark.parametrize(("text", "places"), [("little", []), ("toy", ["subwords bpe"])])
def test_an_adaptation_may_be_to_little_text(
    text: str, places: list[str], warned: Warned, spec: Spec
) -> None:
    """Its subwords are those of the variant that it starts from."""
    spec["corpora"]["little"] = spec["corpora"]["toy"] | {"seed": 7}
    plain = {"corpus": "little", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec["variants"]["adapted"] = plain | {"start_from": "softmax"}
    spec["systems"]["scones-greedy"] = {"variant": "adapted"}
    found = warned({f"encode/{text}": tokens(20)})
    assert [warning.place for warning in found if warning.kind == "vocabulary"] == places


FILES: dict[str, Any] = {
    "corpora": {
        "toy": {
            "kind": "files",
            "train": [{"source": "train.en", "target": "train.de"}],
            "dev": {"source": "dev.en", "target": "dev.de"},
        }
    },
    "test_sets": {"test": {"kind": "files", "source": "test.en", "target": "test.de"}},
}


WORDS: dict[str, Any] = {
    "corpora": {"toy": {"kind": "g2p", "languages": ["ady"], "train": "train", "dev": "dev"}},
    "test_sets": {"test": {"kind": "g2p", "languages": ["ady"], "file": "test"}},
}


def overlap(subject: str, segments: int, **counts: float) -> dict[str, Change]:
    found = [row(name, value, subject, detail={"segments": segments}) for name, value in counts.items()]
    return {"overlap": {"metrics": found}}


def near_zero(*systems: str, chrf: float = 12.0) -> dict[str, Change]:
    return {
        f"score/{system}/{seed}/test/{name}": rows(**{name: value})
        for number, system in enumerate(systems)
        for name, value in (("bleu", 0.1 + 0.1 * number), ("chrf", chrf))
        for seed in (1, 2, 3)
    }


def scones(**fields: Any) -> Spec:
    return {f"systems.scones-greedy.{name}": value for name, value in fields.items()}


def empty(share: float) -> dict[str, Change]:
    return of_seeds("decode/scones-greedy/{}", rows(empty=share, selected_size=10.0))


def cut(*shares: float) -> dict[str, Change]:
    """Change the shares of outputs that were cut, one for each seed of SCONES."""
    return {
        f"decode/scones-greedy/{seed}": rows(truncated=share, empty=0.0, selected_size=10.0)
        for seed, share in enumerate(shares, 1)
    }


def length(ratio: float, system: str = "scones-greedy") -> dict[str, Change]:
    return of_seeds(f"score/{system}/{{}}/test/bleu", rows(bleu=30.0, length_ratio=ratio))


def trained(count: int, stopped: str = "patience") -> dict[str, Change]:
    return {"train/softmax": updates(count, stopped)}


def averaged(*updates: int) -> dict[str, Change]:
    change = trained(2000)["train/softmax"]
    return {"train/softmax": change | {"facts": change["facts"] | {"averaged_updates": list(updates)}}}


def vocabulary(characters: int) -> dict[str, Change]:
    return {"encode": tokens(8_000), "subwords": {"facts": {"characters": characters}}}


def unseen(segments: int = 4) -> dict[str, Change]:
    detail = {"segments": segments, "languages": ["hun"], "letters": ["c"], "tags": []}
    return {"overlap": {"metrics": [row("unseen", 2.0, "0", detail=detail)]}}


AVERAGE = {"variants.softmax.training": {"average": 3}}
LINEAR = {"variants.softmax.training": {"schedule": "linear", "max_updates": 3000}}
BEAM = {"kind": "beam", "length_normalization": 0.0}
SEEN = "^seen-in-training, test: "
LONGER, SHORTER = (rf"^length, scones-greedy on test: outputs have {{}} times the .*{why}" for why in
                   ("not trained long enough", "prefers short outputs"))  # fmt: skip
# what is looked at (the end of a kind), changes of the study and of its steps: what is told
CASES: dict[str, tuple[str, Spec, dict[str, Change], list[str]]] = {
    "in warm-up": ("", {}, {"train/scones": updates(66)}, ["^warm-up, scones, seeds 1, 2, 3: .*66 updates"]),
    "two variants at once": (
        *("", {}, {"train": updates(66)}),
        ["^warm-up, softmax, seed 1; scones, seeds 1, 2, 3: "],
    ),
    "few updates": ("", {}, {"train/scones/2": updates(450)}, ["^few-updates, scones, seed 2: "]),
    # an earlier version did not count the characters
    "text for a vocabulary": (
        "",
        {},
        {"encode": tokens(20_000)},
        [r"^vocabulary, subwords bpe: [^|]*\|\D*$"],
    ),
    **{
        f"a vocabulary for {characters} characters": (
            *("", {}, vocabulary(characters)),
            [rf"^vocabulary, subwords bpe: [^|]*\|.*{advised}"],
        )
        for characters, advised in ((60, "200 "), (500, "800 "), (3000, "More text"))
    },
    # its losses: 4, 2, 1.33
    "still improving": ("", {}, trained(2000, "max_epochs"), ["^still-improving, softmax, seed 1: "]),
    "also by updates": ("", {}, trained(2000, "max_updates"), ["^still-improving, softmax, seed 1: "]),
    "out of patience": ("", {}, trained(2000), []),
    "early in warm-up": ("", {}, trained(66), ["^early-end, .*warm-up of 400.*Raise patience"]),
    "early": ("", {}, trained(450), ["^early-end, .*too few.*Raise patience"]),
    "three averaged": ("", AVERAGE, averaged(500, 1000, 2000), []),
    "two averaged": (
        "",
        AVERAGE,
        averaged(500, 2000),
        ["^fewer-averaged, .*mean of 2 checkpoints, not of 3"],
    ),
    # a linear schedule is meant to go on to its end
    "linear": ("", LINEAR, trained(2000, "max_updates"), []),
    "linear, early": ("", LINEAR, trained(2000), ["^early-end, .*Raise patience"]),
    "not seen": ("in-training", FILES, overlap("0", 4, seen_sources=0, seen_pairs=0), []),
    "sentences seen": (
        *("in-training", FILES, overlap("0", 4, seen_sources=3, seen_pairs=1)),
        [rf"{SEEN}3 of 4 source sentences are in the training text of toy \(1 of them.*held_out: \[test\]"],
    ),
    "words seen": (
        *("in-training", WORDS, overlap("0", 4, seen_sources=2, seen_pairs=2)),
        [rf"{SEEN}2 of 4 source words are in the training text of toy(?!.*held_out)"],
    ),
    "one of ten in development": ("in-training", FILES, overlap("dev", 10, seen_sources=1), []),
    "two of ten in development": (
        *("in-training", FILES, overlap("dev", 10, seen_sources=2)),
        ["^development-in-training, toy: 2 of 10 source sentences of the dev(?!.*held_out)"],
    ),
    "unseen symbols": (
        *("unseen-symbols", WORDS | {"subwords": {"bpe": {"kind": "characters"}}}, unseen()),
        [r": 2 of 4 words have languages \(hun\) and letters \(c\) that no training word of"],
    ),
    "symbols of subwords": ("unseen-symbols", WORDS, unseen(), []),
    "near zero": ("", {}, near_zero("softmax-nvs"), ["^near-zero, .*softmax-nvs 0.1"]),
    "empty outputs": (
        *("empty-outputs", scones(search=BEAM), empty(0.07)),
        ["^empty-outputs, scones-greedy on test: .*7.0 % of the outputs are empty"],
    ),
    "cut outputs": (
        "",
        {},
        cut(0.0, 0.03, 0.06),
        ["^cut-outputs, scones-greedy on test: 3.0 % of the outputs"],
    ),
    "few cut outputs": ("", {}, cut(0.0, 0.02), []),
    "few empty outputs": ("empty-outputs", scones(search=BEAM), empty(0.01), []),
    "empty, normalised": (
        *("empty-outputs", scones(search=BEAM | {"length_normalization": 1.0}), empty(0.07)),
        [],
    ),
    "empty, greedy": ("empty-outputs", scones(search={"kind": "greedy"}), empty(0.07), []),
    "length, selection": (
        *("length", {}, length(0.5, "softmax-lexicon")),
        ["^length, softmax-lexicon on test: .*too few subwords"],
    ),
    **{
        f"length {ratio}, {search}": (
            *("length", scones(search=search), length(ratio)),
            [] if why is None else [why.format(f"{ratio:.3f}")],
        )
        for search, ratio, why in (
            ({"kind": "greedy"}, 0.89, LONGER),
            ({"kind": "greedy"}, 0.9, None),
            ({"kind": "greedy"}, 1.1, None),
            ({"kind": "greedy"}, 1.101, LONGER),
            ({"kind": "exact"}, 0.5, SHORTER),
            (BEAM, 0.5, SHORTER),
            (BEAM, 1.5, LONGER),
            ({"kind": "beam"}, 0.5, LONGER),
        )
    },
}


@pytest.mark.parametrize(("kinds", "study", "steps", "told"), CASES.values(), ids=CASES)
def test_what_is_told_and_what_is_not(
    kinds: str, study: Spec, steps: dict[str, Change], told: list[str], warned: Warned, spec: Spec
) -> None:
    for path, value in study.items():
        *way, last = path.split(".")
        reduce(getitem, way, spec)[last] = value
    lines = [f"{each.kind}, {each.place}: {each.found}|{each.remedy}" for each in warned(steps)]
    lines = [line for line in lines if line.partition(",")[0].endswith(kinds)]
    assert len(lines) == len(told), lines
    for line, words in zip(lines, told, strict=True):
        assert re.search(words, line, re.DOTALL), line


@pytest.mark.parametrize("told", [True, False], ids=["by the step", "by chrF"])
def test_bleu_near_zero_that_is_not_the_systems_fault(told: bool, warned: Warned) -> None:
    """Of two systems one translates; the other's outputs are of subwords, say."""
    changes = near_zero("softmax-greedy") | near_zero("softmax-nvs", chrf=20.0 if told else 45.8)
    if told:
        unfit = row("bleu", 0.0, detail={"unfit": "their subwords were not joined"})
        changes["score/softmax-nvs/1/test/bleu"] = {"metrics": [unfit]}
    found = {warning.kind: warning for warning in warned(changes)}
    assert found.keys() >= {"near-zero", "unfit-metric"}
    assert found["unfit-metric"].place == "softmax-nvs on test"
    assert ("subwords were not joined" if told else "chrF 45.8") in found["unfit-metric"].found
    assert "softmax-nvs" not in found["near-zero"].found


@pytest.mark.parametrize("value, warnings", [(30.0, 0), (0.4, 1)])
def test_of_several_bleus_all_must_be_near_zero(
    value: float, warnings: int, warned: Warned, spec: Spec
) -> None:
    spec["metrics"].append({"kind": "bleu", "tokenize": "char"})
    of_characters = dict.fromkeys(("softmax-greedy", "softmax-lexicon", "scones-greedy"), 60.0)
    changes = near_zero("softmax-nvs")
    for system, own in {**of_characters, "softmax-nvs": value}.items():
        changes |= of_seeds(f"score/{system}/{{}}/test/bleu-char", rows(bleu=own))
    assert [warning.kind for warning in warned(changes)].count("near-zero") == warnings


@pytest.mark.parametrize(("segments", "told"), [(1, False), (2, True), (29, True), (30, False)])
def test_few_segments_are_told_beside_the_table(build: Build, segments: int, told: bool) -> None:
    report = build({"test_set/test": rows(segments=segments)})
    blocks = [block for path, block in report.walk() if path.startswith("systems/test/")]
    assert [type(block).__name__ for block in blocks[:2]] == ["Table", "Warnings" if told else "Facts"]
    warnings = [warning.found for warning in report.warnings() if warning.kind == "few-segments"]
    assert bool(warnings) == told
    # over two segments an interval is from one to the other, which holds a median in half of the cases
    assert all((share in found) == (segments < 5) for found in warnings for share in ("48 to 85 %",))


def test_so_are_few_segments_of_an_analysis(build: Build, spec: Spec) -> None:
    spec["analyses"] = {
        "curse": {"kind": "beam_sizes", "test_set": "test", "sentences": 20},
        "empty": {"kind": "empty_string", "test_set": "test"},
    }
    report = build()
    blocks = report.section("analyses/beam_sizes/curse").blocks
    (warning,) = next(block.warnings for block in blocks if isinstance(block, Warnings))
    assert (warning.kind, warning.place) == ("few-segments", "curse on test")
    assert warning.found.startswith("20 segments")
    assert [w.place for w in report.warnings() if w.kind == "few-segments"] == ["curse on test"]


def test_the_mark_of_a_difference_between_systems_near_zero_becomes_a_warning(build: Build) -> None:
    report = build(near_zero("softmax-greedy", "softmax-nvs"))
    assert not rows_of(report)["softmax-nvs"].cells["bleu"].delta.significant
    kinds = {warning.kind: warning for warning in report.warnings()}
    assert kinds.keys() == {"near-zero", "mark-without-meaning"}
    assert kinds["mark-without-meaning"].place == "softmax-nvs on test"
    other = rows_of(report)["scones-greedy"].cells["bleu"].delta  # one of the two is not near zero
    assert other.note != NO_MARK


def test_chrf_keeps_its_mark_where_bleu_near_zero_is_not_the_systems_fault(build: Build) -> None:
    cells = rows_of(build(near_zero("softmax-greedy", "softmax-nvs", chrf=45.8)))["softmax-nvs"].cells
    assert not cells["bleu"].delta.significant
    assert cells["bleu"].delta.note == NO_MARK != cells["chrf"].delta.note


def test_so_does_that_of_a_further_comparison(warned: Warned, spec: Spec) -> None:
    spec["systems"]["softmax-nvs"]["more_baselines"] = ["scones-greedy"]
    spec["variants"]["scones"]["seeds"] = [1]  # as many as softmax has: else nothing would be marked
    kinds = {warning.kind: warning for warning in warned(near_zero("scones-greedy", "softmax-nvs"))}
    assert kinds["mark-without-meaning"].place == "softmax-nvs, against scones-greedy on test"


def test_code_in_a_text() -> None:
    shown = code_parts("Set `a: <1>`, or `b`")
    assert shown == [("Set ", False), ("a: <1>", True), (", or ", False), ("b", True)]
    assert code_parts("a `lone mark") == [("a `lone mark", False)]


def test_two_systems_with_the_same_outputs(warned: Warned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teatime_study, "bleu", lambda system, seed: 30.0)
    (warning,) = warned()  # softmax-lexicon has one text of its own
    assert (warning.kind, warning.place) == ("same-outputs", "test")
    assert warning.found.startswith("softmax-greedy and softmax-nvs ")
