"""Every warning of results is provoked, and every printer shows it."""

import math
from typing import Any

import pytest
import teatime_study
from blocks import rows_of
from teatime_study import fill_study

from creamtea.document.mistakes import StudyWarning
from creamtea.report.build import build_report
from creamtea.report.cells import NO_MARK
from creamtea.report.model import Warnings
from creamtea.report.text import code_parts
from creamtea.report.warnings import _last_gain
from creamtea.store.database import Database
from creamtea.store.queries import CurvePoint


@pytest.fixture(autouse=True)
def one_thing_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two systems of the study have the same texts and scores, which only the test of it wants."""
    monkeypatch.setattr(teatime_study, "bleu", lambda system, seed: 30.0 + ord(system[-1]) + 0.5 * seed)


def warned(database: Database) -> list[StudyWarning]:
    return build_report(database, "teatime").warnings()


def the_one(warnings: list[StudyWarning]) -> StudyWarning:
    (warning,) = warnings
    return warning


def updates(count: int, stopped: str = "max_epochs") -> dict[str, Any]:
    facts = {"device": "cpu", "threads": 2, "training_seconds": 318.25, "stopped": stopped}
    return {"metrics": [teatime_study.row("updates", float(count))], "facts": facts}


def test_good_results_give_none(database: Database) -> None:
    fill_study(database)
    assert warned(database) == []
    assert "warnings" not in [section.key for section in build_report(database, "teatime").sections]


def test_a_warm_up_that_did_not_end(database: Database) -> None:
    fill_study(database, changes={"train/scones": updates(66)})
    warning = the_one(warned(database))
    assert (warning.kind, warning.place) == ("warm-up", "scones, seeds 1, 2, 3")
    assert "66 updates" in warning.found


@pytest.mark.parametrize(
    "before, last, higher, gain",
    [(4.0, 3.0, False, 0.25), (0.0, 0.4, True, math.inf), (0.0, 0.0, True, 0.0), (2.0, 1.0, True, -0.5)],
)
def test_the_last_gain(before: float, last: float, higher: bool, gain: float) -> None:
    points = [CurvePoint(1.0, before, ""), CurvePoint(2.0, last, "")]
    assert _last_gain(points, higher) == pytest.approx(gain)


def test_few_updates(database: Database) -> None:
    fill_study(database, changes={"train/scones/2": updates(450)})
    warning = the_one(warned(database))
    assert (warning.kind, warning.place) == ("few-updates", "scones, seed 2")


@pytest.mark.parametrize("stopped", ["max_epochs", "max_updates", "patience"])
def test_a_training_that_was_still_improving(stopped: str, database: Database) -> None:
    fill_study(database, changes={"train/softmax": updates(2000, stopped)})  # its losses: 4, 2, 1.33
    kinds = [warning.kind for warning in warned(database)]
    assert kinds == ([] if stopped == "patience" else ["still-improving"])


@pytest.mark.parametrize(("stopped", "kinds"), [("max_updates", []), ("patience", ["early-end"])])
def test_a_linear_schedule_is_meant_to_go_on_to_its_end(
    stopped: str, kinds: list[str], database: Database, spec: dict[str, Any]
) -> None:
    linear = spec["variants"]["softmax"] | {"training": {"schedule": "linear", "max_updates": 3000}}
    changed = spec | {"variants": spec["variants"] | {"softmax": linear}}
    fill_study(database, changed, {"train/softmax": updates(2000, stopped)})
    assert [warning.kind for warning in warned(database)] == kinds


@pytest.mark.parametrize(("count", "said"), [(66, "warm-up of 400"), (450, "too few"), (2000, "")])
def test_patience_that_ended_a_training_too_early(count: int, said: str, database: Database) -> None:
    fill_study(database, changes={"train/softmax": updates(count, "patience")})
    found = warned(database)
    assert [warning.kind for warning in found] == (["early-end"] if said else [])
    assert all(said in warning.found and "Raise patience" in warning.remedy for warning in found)


def test_the_same_of_several_variants_is_said_once(database: Database) -> None:
    fill_study(database, changes={"train/scones": updates(66), "train/softmax": updates(66)})
    warning = the_one(warned(database))
    assert warning.place == "softmax, seed 1; scones, seeds 1, 2, 3"


def test_a_vocabulary_too_large_for_the_encoded_text(database: Database) -> None:
    tokens = [teatime_study.row("tokens", 20_000.0, f"train.{side}") for side in ("src", "tgt")]
    fill_study(database, changes={"encode": {"metrics": tokens}})
    warning = the_one(warned(database))
    assert warning.kind == "vocabulary"
    assert not any(map(str.isdigit, warning.remedy))  # an earlier version did not count the characters


@pytest.mark.parametrize(("text", "places"), [("little", []), ("toy", ["subwords bpe"])])
def test_an_adaptation_may_be_to_little_text(
    text: str, places: list[str], database: Database, spec: dict[str, Any]
) -> None:
    """Its subwords are those of the variant that it starts from."""
    spec["corpora"]["little"] = spec["corpora"]["toy"] | {"seed": 7}
    plain = {"corpus": "little", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec["variants"]["adapted"] = plain | {"start_from": "softmax"}
    spec["systems"]["scones-greedy"] = {"variant": "adapted"}
    tokens = [teatime_study.row("tokens", 20.0, f"train.{side}") for side in ("src", "tgt")]
    fill_study(database, spec, {f"encode/{text}": {"metrics": tokens}})
    assert [warning.place for warning in warned(database) if warning.kind == "vocabulary"] == places


@pytest.mark.parametrize(("characters", "advised"), [(60, "200 "), (500, "800 "), (3000, "More text")])
def test_no_vocabulary_is_advised_that_has_no_room_for_the_characters(
    characters: int, advised: str, database: Database
) -> None:
    tokens = [teatime_study.row("tokens", 8_000.0, f"train.{side}") for side in ("src", "tgt")]
    changes = {"encode": {"metrics": tokens}, "subwords": {"facts": {"characters": characters}}}
    fill_study(database, changes=changes)
    assert advised in the_one(warned(database)).remedy


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


@pytest.mark.parametrize("seen, warnings", [(0.0, []), (3.0, ["seen-in-training"])])
def test_test_sentences_in_the_training_text(
    seen: float, warnings: list[str], database: Database, spec: dict[str, Any]
) -> None:
    counts = [
        teatime_study.row(name, value, "0", detail={"segments": 4})
        for name, value in (("seen_sources", seen), ("seen_pairs", min(seen, 1.0)))
    ]
    fill_study(database, spec | FILES, {"overlap": {"metrics": counts}})
    found = warned(database)
    assert [warning.kind for warning in found] == warnings
    for warning in found:
        assert warning.place == "test"
        assert warning.found.startswith("3 of 4 source sentences are in the training text of toy (1 of them")
        assert "held_out: [test]" in warning.remedy


@pytest.mark.parametrize("seen, warnings", [(1.0, []), (2.0, ["development-in-training"])])
def test_development_sentences_in_the_training_text(
    seen: float, warnings: list[str], database: Database, spec: dict[str, Any]
) -> None:
    counts = [teatime_study.row("seen_sources", seen, "dev", detail={"segments": 10})]
    fill_study(database, spec | FILES, {"overlap": {"metrics": counts}})
    found = warned(database)
    assert [(warning.kind, warning.place) for warning in found] == [(kind, "toy") for kind in warnings]
    assert all(warning.found.startswith("2 of 10 source sentences of the dev") for warning in found)


def test_test_words_in_the_training_text(database: Database, spec: dict[str, Any]) -> None:
    words = {"kind": "g2p", "languages": ["ady"], "train": "train", "dev": "dev"}
    counts = [
        teatime_study.row(name, 2.0, "0", detail={"segments": 4}) for name in ("seen_sources", "seen_pairs")
    ]
    test = {"kind": "g2p", "languages": ["ady"], "file": "test"}
    changed = spec | {"corpora": {"toy": words}, "test_sets": {"test": test}}
    fill_study(database, changed, {"overlap": {"metrics": counts}})
    (found,) = [warning for warning in warned(database) if warning.kind == "seen-in-training"]
    assert found.found.startswith("2 of 4 source words are in the training text of toy")
    assert "held_out" not in found.remedy


@pytest.mark.parametrize(("subwords", "kinds"), [({"kind": "characters"}, ["unseen-symbols"]), ({}, [])])
def test_symbols_that_no_training_word_has(
    subwords: dict[str, Any], kinds: list[str], database: Database, spec: dict[str, Any]
) -> None:
    words = {"kind": "g2p", "languages": ["ady"], "train": "train", "dev": "dev"}
    test = {"kind": "g2p", "languages": ["ady"], "file": "test"}
    detail = {"segments": 4, "languages": ["hun"], "letters": ["c"], "tags": []}
    changed = spec | {"corpora": {"toy": words}, "test_sets": {"test": test}}
    changed["subwords"] = {name: subwords or block for name, block in spec["subwords"].items()}
    counts = {"overlap": {"metrics": [teatime_study.row("unseen", 2.0, "0", detail=detail)]}}
    fill_study(database, changed, counts)
    found = [warning for warning in warned(database) if warning.kind == "unseen-symbols"]
    assert [warning.kind for warning in found] == kinds
    for warning in found:
        assert warning.found.startswith(
            "2 of 4 words have languages (hun) and letters (c) that no training word of"
        )


def near_zero(*systems: str, chrf: float = 12.0) -> dict[str, Any]:
    return {
        f"score/{system}/{seed}/test/{name}": {"metrics": [teatime_study.row(name, value)]}
        for number, system in enumerate(systems)
        for name, value in (("bleu", 0.1 + 0.1 * number), ("chrf", chrf))
        for seed in (1, 2, 3)
    }


def of_characters(system: str, value: float) -> dict[str, Any]:
    return {
        f"score/{system}/{seed}/test/bleu-char": {"metrics": [teatime_study.row("bleu", value)]}
        for seed in (1, 2, 3)
    }


def test_bleu_near_zero(database: Database) -> None:
    fill_study(database, changes=near_zero("softmax-nvs"))
    warning = the_one(warned(database))
    assert warning.kind == "near-zero"
    assert "softmax-nvs 0.1" in warning.found


@pytest.mark.parametrize("told", [True, False], ids=["by the step", "by chrF"])
def test_bleu_near_zero_that_is_not_the_systems_fault(told: bool, database: Database) -> None:
    """Of two systems one translates; the other's outputs are of subwords, say."""
    changes = near_zero("softmax-greedy") | near_zero("softmax-nvs", chrf=20.0 if told else 45.8)
    if told:
        row = teatime_study.row("bleu", 0.0, detail={"unfit": "their subwords were not joined"})
        changes["score/softmax-nvs/1/test/bleu"] = {"metrics": [row]}
    fill_study(database, changes=changes)
    found = {warning.kind: warning for warning in warned(database)}
    assert found.keys() >= {"near-zero", "unfit-metric"}
    assert found["unfit-metric"].place == "softmax-nvs on test"
    assert ("subwords were not joined" if told else "chrF 45.8") in found["unfit-metric"].found
    assert "softmax-nvs" not in found["near-zero"].found


@pytest.mark.parametrize("value, warnings", [(30.0, 0), (0.4, 1)])
def test_of_several_bleus_all_must_be_near_zero(
    value: float, warnings: int, database: Database, spec: dict[str, Any]
) -> None:
    spec["metrics"].append({"kind": "bleu", "tokenize": "char"})
    others = of_characters("softmax-greedy", 60) | of_characters("softmax-lexicon", 60)
    others |= of_characters("scones-greedy", 60)
    own = near_zero("softmax-nvs") | of_characters("softmax-nvs", value)
    fill_study(database, spec, others | own)
    assert [warning.kind for warning in warned(database)].count("near-zero") == warnings


@pytest.mark.parametrize(("segments", "told"), [(1, False), (2, True), (29, True), (30, False)])
def test_few_segments_are_told_beside_the_table(database: Database, segments: int, told: bool) -> None:
    fill_study(database, changes={"test_set/test": {"metrics": [teatime_study.row("segments", segments)]}})
    report = build_report(database, "teatime")
    blocks = [block for path, block in report.walk() if path.startswith("systems/test/")]
    assert [type(block).__name__ for block in blocks[:2]] == ["Table", "Warnings" if told else "Facts"]
    assert ("few-segments" in {warning.kind for warning in report.warnings()}) == told


def test_so_are_few_segments_of_an_analysis(database: Database, spec: dict[str, Any]) -> None:
    spec["analyses"] = {
        "curse": {"kind": "beam_sizes", "test_set": "test", "sentences": 20},
        "empty": {"kind": "empty_string", "test_set": "test"},
    }
    fill_study(database, spec)
    blocks = build_report(database, "teatime").section("analyses/beam_sizes/curse").blocks
    (warning,) = next(block.warnings for block in blocks if isinstance(block, Warnings))
    assert (warning.kind, warning.place) == ("few-segments", "curse on test")
    assert warning.found.startswith("20 segments")
    assert [w.place for w in warned(database) if w.kind == "few-segments"] == ["curse on test"]


def test_a_difference_between_systems_near_zero_is_not_marked(database: Database) -> None:
    fill_study(database)
    before = rows_of(build_report(database, "teatime"))["softmax-nvs"].cells["bleu"].delta
    assert before.significant


def test_its_mark_becomes_a_warning(database: Database) -> None:
    fill_study(database, changes=near_zero("softmax-greedy", "softmax-nvs"))
    report = build_report(database, "teatime")
    cells = rows_of(report)["softmax-nvs"].cells
    assert not cells["bleu"].delta.significant
    kinds = {warning.kind: warning for warning in report.warnings()}
    assert kinds.keys() == {"near-zero", "mark-without-meaning"}
    assert kinds["mark-without-meaning"].place == "softmax-nvs on test"
    other = rows_of(report)["scones-greedy"].cells["bleu"].delta  # one of the two is not near zero
    assert other.note != NO_MARK


def test_so_does_that_of_a_further_comparison(database: Database, spec: dict[str, Any]) -> None:
    spec["systems"]["softmax-nvs"]["more_baselines"] = ["scones-greedy"]
    spec["variants"]["scones"]["seeds"] = [1]  # as many as softmax has: else nothing would be marked
    fill_study(database, spec, near_zero("scones-greedy", "softmax-nvs"))
    kinds = {warning.kind: warning for warning in warned(database)}
    assert kinds["mark-without-meaning"].place == "softmax-nvs, against scones-greedy on test"


@pytest.mark.parametrize(
    ("search", "share", "told"),
    [
        ({"kind": "beam", "width": 5, "length_normalization": 0.0}, 0.07, True),
        ({"kind": "beam", "width": 5, "length_normalization": 0.0}, 0.01, False),
        ({"kind": "beam", "width": 5, "length_normalization": 1.0}, 0.07, False),
        ({"kind": "greedy"}, 0.07, False),
    ],
)
def test_a_beam_that_prefers_empty_outputs(
    database: Database, spec: dict[str, Any], search: dict[str, Any], share: float, told: bool
) -> None:
    spec["systems"]["scones-greedy"]["search"] = search
    metrics = [teatime_study.row("empty", share), teatime_study.row("selected_size", 10.0)]
    fill_study(
        database,
        spec=spec,
        changes={f"decode/scones-greedy/{seed}": {"metrics": metrics} for seed in (1, 2, 3)},
    )
    found = [warning for warning in warned(database) if warning.kind == "empty-outputs"]
    assert [warning.place for warning in found] == ["scones-greedy on test"] * told
    assert all("7.0 % of the outputs are empty" in warning.found for warning in found)


@pytest.mark.parametrize(("length", "told"), [(0.89, True), (0.9, False), (1.1, False), (1.101, True)])
def test_outputs_of_another_length(database: Database, length: float, told: bool) -> None:
    rows = {"metrics": [teatime_study.row("bleu", 30.0), teatime_study.row("length_ratio", length)]}
    fill_study(database, changes={f"score/scones-greedy/{seed}/test/bleu": rows for seed in (1, 2, 3)})
    found = [(warning.place, warning.found) for warning in warned(database) if warning.kind == "length"]
    words = f"outputs have {length:.3f} times the length of the references"
    assert found == [("scones-greedy on test", words)] * told


@pytest.mark.parametrize(
    ("system", "length", "why"),
    [
        ({"search": {"kind": "greedy"}}, 0.5, "not trained long enough"),
        ({"search": {"kind": "exact"}}, 0.5, "prefers short outputs"),
        ({"search": {"kind": "beam", "length_normalization": 0.0}}, 0.5, "prefers short outputs"),
        ({"search": {"kind": "beam", "length_normalization": 0.0}}, 1.5, "not trained long enough"),
        ({"search": {"kind": "beam"}}, 0.5, "not trained long enough"),
    ],
)
def test_why_outputs_are_short_depends_on_the_search(
    database: Database, spec: dict[str, Any], system: dict[str, Any], length: float, why: str
) -> None:
    spec["systems"]["scones-greedy"] |= system
    rows = {"metrics": [teatime_study.row("bleu", 30.0), teatime_study.row("length_ratio", length)]}
    changes = {f"score/scones-greedy/{seed}/test/bleu": rows for seed in (1, 2, 3)}
    fill_study(database, spec=spec, changes=changes)
    (warning,) = [warning for warning in warned(database) if warning.kind == "length"]
    assert why in warning.remedy


def test_code_in_a_text() -> None:
    shown = code_parts("Set `a: <1>`, or `b`")
    assert shown == [("Set ", False), ("a: <1>", True), (", or ", False), ("b", True)]
    assert code_parts("a `lone mark") == [("a `lone mark", False)]


def test_two_systems_with_the_same_outputs(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teatime_study, "bleu", lambda system, seed: 30.0)
    fill_study(database)  # softmax-lexicon has one text of its own
    warning = the_one(warned(database))
    assert (warning.kind, warning.place) == ("same-outputs", "test")
    assert warning.found.startswith("softmax-greedy and softmax-nvs ")
