"""The labels by their definitions, on evidence written by hand."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rated_campaigns import rated_campaign
from sqlalchemy import select
from table_rows import step_row

from creamtea.blame.gathering import Settings, _key, _Work, references_of, why_none
from creamtea.blame.labels import (
    FULL,
    OUTPUT,
    REFERENCE,
    Evidence,
    Finding,
    Mark,
    Marked,
    Origin,
    label,
    marks_of_edit,
)
from creamtea.contract.step import StepResult
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.ingest import ingest, read_texts
from creamtea.store.tables import Item
from creamtea.study.spec import Study


def candidate(names: str, text: str, score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "names": names.split("+"),
        "text": text,
        "score": score,
        "length": len(text.split()),
        "forbidden": None,
        "outcome": "",
        **more,
    }


def evidence(*candidates: dict[str, Any], normalization: float = 0.0) -> Evidence:
    return Evidence.of({"candidates": list(candidates), "normalization": normalization, "tolerance": 1e-4})


def at(text: str, marked: str) -> Mark:
    start = text.index(marked)
    return Mark(start, start + len(marked) - 1)


DOG, CAT = "der Hund schläft heute", "die Katze schläft heute"


def of_dog(*others: dict[str, Any], score: float = -5.0, marked: str = "Hund") -> Finding:
    found = evidence(candidate(OUTPUT, DOG, score), *others)
    return label(found, at(DOG, marked), [REFERENCE])


def test_a_better_translation_that_the_model_prefers_was_missed_by_the_search() -> None:
    found = of_dog(candidate(REFERENCE, CAT, -4.0))
    assert (found.origin, found.marked, found.needed) == (Origin.SEARCH, "Hund", ("die", "Katze"))
    assert found.instead is found.better


def test_a_wrong_output_that_the_model_prefers_is_its_own() -> None:
    found = of_dog(candidate(REFERENCE, CAT, -6.0))
    assert found.origin is Origin.MODEL
    assert found.instead.names == (OUTPUT,)


def test_equal_scores_are_no_error_of_the_search() -> None:
    assert of_dog(candidate(REFERENCE, CAT, -5.0)).origin is Origin.MODEL
    assert of_dog(candidate(REFERENCE, CAT, -5.0 + 1e-5)).origin is Origin.MODEL  # rounding


def test_an_output_that_keeps_the_error_and_scores_higher_counts_against_the_model() -> None:
    keeps = candidate("exact search", "der Hund schläft", -3.0, outcome="proved")
    found = of_dog(candidate(REFERENCE, CAT, -4.0), keeps)
    assert found.origin is Origin.MODEL
    assert found.instead.names == ("exact search",)
    assert found.instead.proved


def test_an_empty_output_that_the_model_prefers_neither_has_nor_mends_the_error() -> None:
    empty = candidate("exact search", "", -1.0, outcome="proved")
    assert of_dog(candidate(REFERENCE, CAT, -6.0), empty).origin is Origin.MODEL
    assert of_dog(candidate(REFERENCE, CAT, -4.0), empty).origin is Origin.SEARCH
    extra = "der Hund schläft heute heute"
    found = evidence(
        candidate(OUTPUT, extra, -5.0), empty, candidate(REFERENCE, "der Hund schläft heute", -6.0)
    )
    assert label(found, Mark(23, 27), [REFERENCE]).origin is Origin.MODEL


def test_a_wider_beam_that_says_what_was_needed_is_as_good_as_the_reference() -> None:
    beam = candidate("beam 16", "die Katze schläft jetzt", -4.0)
    found = of_dog(candidate(REFERENCE, CAT, -9.0), beam)
    assert found.origin is Origin.SEARCH
    assert found.instead.names == ("beam 16",)


def test_a_word_that_was_not_allowed() -> None:
    reference = candidate(REFERENCE, CAT, -6.0, forbidden=[[4, 9]])
    writes = candidate(FULL, "der Kater schläft heute", -4.0, forbidden=[])
    assert of_dog(reference, writes).origin is Origin.SELECTION
    same = candidate(f"{OUTPUT}+{FULL}", DOG, -5.0, forbidden=[])
    found = label(evidence(same, reference), at(DOG, "Hund"), [REFERENCE])
    assert found.origin is Origin.MODEL, "with all words it writes the same"
    allowed = candidate(REFERENCE, CAT, -6.0, forbidden=[[18, 23]])
    assert of_dog(allowed, writes).origin is Origin.MODEL, "another word was not allowed"


def test_another_word_of_a_translation_that_mends_the_error() -> None:
    """The full vocabulary mends the error after a word that was not allowed, or before one (of a beam)."""
    full = candidate(f"{FULL}+{REFERENCE}", "heute schläft die Katze", -4.0, forbidden=[[0, 5]])
    found = evidence(candidate(OUTPUT, "jetzt schläft der Hund", -5.0), full)
    assert label(found, Mark(18, 21), [REFERENCE]).origin is Origin.SELECTION
    later = candidate(f"{FULL}+{REFERENCE}", "jetzt schläft die Katze heute", -4.0, forbidden=[[24, 29]])
    found = evidence(candidate(OUTPUT, "jetzt schläft der Hund heute", -5.0), later)
    assert label(found, Mark(18, 21), [REFERENCE]).origin is Origin.SELECTION
    allowed = candidate(f"{FULL}+{REFERENCE}", "jetzt schläft die Katze heute", -4.0, forbidden=[])
    found = evidence(candidate(OUTPUT, "jetzt schläft der Hund heute", -5.0), allowed)
    assert label(found, Mark(18, 21), [REFERENCE]).origin is Origin.SEARCH, "it could have written all of it"


def test_selection_comes_before_search() -> None:
    reference = candidate(f"{REFERENCE}+{FULL}", CAT, -4.0, forbidden=[[4, 9]])
    assert of_dog(reference).origin is Origin.SELECTION


def test_the_better_rated_output_comes_before_the_reference() -> None:
    other = candidate("system beam", "der Hund schlief heute", -4.0)
    found = evidence(candidate(OUTPUT, DOG, -5.0), other, candidate(REFERENCE, CAT, -9.0))
    names = ["system beam", REFERENCE]
    assert label(found, at(DOG, "Hund"), names).better.names == (REFERENCE,), "the other has it, too"
    assert label(found, at(DOG, "schläft"), names).needed == ("schlief",)


def test_of_several_references_the_closest_says_what_was_needed() -> None:
    far = candidate("reference", "heute schläft hier die Katze", -3.0)
    near = candidate("reference 3", CAT, -6.0)
    other = candidate("reference 2+beam 16", "das Tier schläft jetzt", -7.0)
    found = evidence(candidate(OUTPUT, DOG, -5.0), far, near, other)
    assert found.references() == ["reference 3", "reference 2", "reference"]
    finding = label(found, at(DOG, "Hund"), found.references())
    assert (finding.needed, finding.origin) == (("die", "Katze"), Origin.MODEL)
    assert label(found, at(DOG, "heute"), found.references()).needed == ("jetzt",), "the closest has it, too"
    same = evidence(candidate(OUTPUT, DOG, -5.0), candidate("reference 2+reference", CAT, -6.0))
    assert same.references() == ["reference 2"]


def test_of_equally_close_references_the_first() -> None:
    found = evidence(
        candidate(OUTPUT, DOG, -5.0),
        candidate("reference 10", DOG.replace("Hund", "Esel"), -6.0),
        candidate("reference 2", DOG.replace("Hund", "Kater"), -6.0),
    )
    assert found.references() == ["reference 2", "reference 10"]


def test_whether_exact_search_was_proved() -> None:
    own = candidate(OUTPUT, DOG, -5.0)
    assert evidence(own).proved is None
    assert evidence(own, candidate("exact search", CAT, -4.0, outcome="improved")).proved is False
    assert evidence(candidate(f"{OUTPUT}+exact search", DOG, -5.0, outcome="proved")).proved is True


def test_nothing_better_is_known() -> None:
    assert of_dog(candidate(REFERENCE, DOG.replace("heute", "jetzt"), -4.0)).origin is Origin.UNDECIDED
    found = evidence(candidate(OUTPUT, DOG, -5.0))
    assert label(found, at(DOG, "Hund"), ["system beam"]).origin is Origin.UNDECIDED


def test_omissions() -> None:
    short = "der Hund schläft"
    found = evidence(
        candidate(OUTPUT, short, -5.0),
        candidate(REFERENCE, "der kleine Hund schläft heute", -6.0),
        candidate("exact search", "der kleine Hund schläft heute .", -4.0),
    )
    finding = label(found, Mark(), [REFERENCE])
    assert (finding.origin, finding.needed) == (Origin.SEARCH, ("kleine", "heute"))
    partly = evidence(
        candidate(OUTPUT, short, -5.0),
        candidate(REFERENCE, "der kleine Hund schläft heute", -6.0),
        candidate("exact search", "der kleine Hund schläft", -4.0),
    )
    assert label(partly, Mark(), [REFERENCE]).origin is Origin.MODEL


def test_an_empty_output_has_no_omission() -> None:
    found = evidence(
        candidate(OUTPUT, "der Hund schläft", -5.0),
        candidate(REFERENCE, "der Hund schläft heute", -4.0),
        candidate("exact search", "", -1.0),
        candidate("beam 16", "der Hund schläft .", -4.5),
    )
    assert label(found, Mark(), [REFERENCE]).origin is Origin.SEARCH


def test_a_mark_between_words_is_what_stands_there() -> None:
    found = evidence(
        candidate(OUTPUT, "der Hund schläft", -5.0), candidate(REFERENCE, "der Hund hier schläft", -4.0)
    )
    assert label(found, Mark(8, 8), [REFERENCE]).needed == ("hier",)
    assert label(found, Mark(3, 3), [REFERENCE]).origin is Origin.UNDECIDED


def test_impossible_translations_and_normalised_scores() -> None:
    assert of_dog(candidate(REFERENCE, CAT, None)).origin is Origin.MODEL  # entmax
    longer = candidate(REFERENCE, "die Katze schläft heute den ganzen Tag lang", -6.0)
    plain = evidence(candidate(OUTPUT, DOG, -5.0), longer)
    assert label(plain, at(DOG, "Hund"), [REFERENCE]).origin is Origin.MODEL
    by_length = evidence(candidate(OUTPUT, DOG, -5.0), longer, normalization=1.0)
    assert label(by_length, at(DOG, "Hund"), [REFERENCE]).origin is Origin.SEARCH


def test_right_to_left_and_unspaced_scripts() -> None:
    found = evidence(candidate(OUTPUT, "猫が寝る", -5.0), candidate(REFERENCE, "犬が寝る", -4.0))
    finding = label(found, Mark(0, 0), [REFERENCE])
    assert (finding.marked, finding.needed) == ("猫", ("犬",))
    arabic = evidence(candidate(OUTPUT, "القط ينام", -5.0), candidate(REFERENCE, "الكلب ينام", -4.0))
    assert label(arabic, Mark(0, 3), [REFERENCE]).needed == ("الكلب",)


def test_evidence_without_the_output_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the output"):
        label(evidence(candidate(REFERENCE, CAT, -1.0)), Mark(), [REFERENCE])


def test_what_a_rater_corrected_is_marked() -> None:
    changed = marks_of_edit("der Hund schläft heute", "der Hund schlief heute")
    assert changed == [Mark(9, 15)]
    assert marks_of_edit("der Hund schläft", "der kleine Hund schläft heute") == [Mark()]
    assert marks_of_edit("der Hund schläft tief", "der kleine Hund schläft") == [Mark(17, 20), Mark()]
    assert marks_of_edit(DOG, DOG) == []


def test_a_large_campaigns_outputs_are_found_by_their_segments() -> None:
    """A report asks for each output; looking through all of them each time would take minutes."""
    marked = Marked({(segment, system): f"{system}" for segment in range(2000) for system in range(10)})
    assert marked.beside((7, 9)) == {system: f"{system}" for system in range(9)}
    assert sum(len(marked.beside(output)) for output in marked.texts) == 2000 * 10 * 9
    assert marked.beside((2000, 0)) == {}


# ---------------------------------------------------------------- the key of evidence


KEYED = (3, 0)


def step(key: str) -> Any:
    return SimpleNamespace(task=SimpleNamespace(key=key))


def key(own: str = "own", **others: str) -> str:
    models = {name: step(model) for name, model in others.items()}
    work = _Work("greedy", step(own), {KEYED: "a dog"}, {KEYED: {"reference": "ein Hund"}}, models)
    return _key(work, KEYED, Settings())


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("other", {"scones": "first"}),
        ("own", {"scones": "trained anew"}),
        ("own", {}),
        ("own", {"scones": "first", "entmax": "x"}),
    ],
)
def test_evidence_is_gathered_anew_where_a_model_is_another(own: str, others: dict[str, str]) -> None:
    assert key(scones="first") == key(scones="first")
    assert key(own, **others) != key(scones="first")


# ---------------------------------------------------------------- no model of the study


STUDY = {
    "name": "given",
    "languages": {"source": "en", "target": "de"},
    "test_sets": {"test": {"kind": "files", "source": "test.en", "target": "test.de"}},
    "systems": {"gpt": {"outputs": {"test": "gpt.de"}}, "human": {"reference": 1}},
    "baseline": "gpt",
}


def test_systems_that_are_given_are_told_apart() -> None:
    spec = Study.model_validate(STUDY)
    given = "the outputs of gpt, human are given as texts: no model of it made them"
    others = "ours, nllb are not among its systems, or their texts differ"
    assert why_none(spec, ["gpt", "human"]) == given
    assert why_none(spec, ["ours", "nllb"]) == others
    assert why_none(spec, ["ours", "gpt", "nllb", "human"]) == f"{given}; {others}"


# ---------------------------------------------------------------- references of a campaign


def test_of_the_test_set_and_those_that_raters_saw(database: Database, tmp_path: Path) -> None:
    items = [{"systems": [0], "outputs": ["x"], "steps": {"anna": [50]}} for _ in range(3)]
    number = rated_campaign(database, items, name="rated", protocol="esa", systems=("plain",))
    rows = [
        {"source": "s", "reference": "eins", "idioms": [], "more_references": ["uno", "eins"]},
        {"source": "s", "reference": "zwei", "idioms": [], "more_references": ["", "due"]},
        {"source": "s", "reference": "", "idioms": [], "more_references": ["", ""]},
    ]
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "segments.jsonl").write_text(
        "".join(json.dumps({"index": index, **row}) + "\n" for index, row in enumerate(rows))
    )
    store = ArtefactStore(tmp_path / "artefacts")
    with database.transaction() as session:
        session.add(step_row("texts", "test_set"))
        session.flush()
        files = store.put_folder(folder)
        ingest(session, "texts", StepResult(), files, read_texts(store, files))
        for item in session.scalars(select(Item).where(Item.segment_index == 1)):
            item.references = ["dos", "zwei"]
    with database.session() as session:
        found = references_of(session, store, "texts", number)
    assert found == {0: ["eins", "uno"], 1: ["zwei", "due", "dos"], 2: []}
