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
    """The last place of a word; an omission of none."""
    start = text.rindex(marked)
    return Mark(start, start + len(marked) - 1) if marked else Mark()


DOG, CAT = "der Hund schläft heute", "die Katze schläft heute"
SHORT, LONG = "der Hund schläft", "die Katze schläft heute den ganzen Tag lang"
LITTLE, NOW = "der kleine Hund schläft heute", "jetzt schläft die Katze heute"
SEARCH, MODEL, SELECTION, UNDECIDED = Origin.SEARCH, Origin.MODEL, Origin.SELECTION, Origin.UNDECIDED
EMPTY = candidate("exact search", "", -1.0, outcome="proved")
KATER = candidate(FULL, "der Kater schläft heute", -4.0, forbidden=[])


def better(text: str, score: float | None, names: str = REFERENCE, **more: Any) -> dict[str, Any]:
    return candidate(names, text, score, **more)


def labelled(text: str, marked: str, *others: dict[str, Any], own: str = OUTPUT, by: float = 0.0) -> Finding:
    """Of an output with a score of -5, where a word is marked."""
    output = candidate(own, text, -5.0, **({"forbidden": []} if own != OUTPUT else {}))
    return label(evidence(output, *others, normalization=by), at(text, marked), [REFERENCE])


@pytest.mark.parametrize(
    ("text", "marked", "others", "origin"),
    [
        (DOG, "Hund", [better(CAT, -4.0)], SEARCH),
        (DOG, "Hund", [better(CAT, -6.0)], MODEL),
        (DOG, "Hund", [better(CAT, -5.0)], MODEL),
        (DOG, "Hund", [better(CAT, -5.0 + 1e-5)], MODEL),  # rounding
        (DOG, "Hund", [better(CAT, None)], MODEL),  # impossible, by entmax
        # an output that keeps the error and scores higher counts against the model
        (DOG, "Hund", [better(CAT, -4.0), candidate("exact search", SHORT, -3.0, outcome="proved")], MODEL),
        # an empty one that scores higher neither has nor mends the error
        (DOG, "Hund", [better(CAT, -6.0), EMPTY], MODEL),
        (DOG, "Hund", [better(CAT, -4.0), EMPTY], SEARCH),
        (f"{DOG} heute", "heute", [EMPTY, better(DOG, -6.0)], MODEL),
        # a wider beam that says what was needed is as good as the reference
        (DOG, "Hund", [better(CAT, -9.0), candidate("beam 16", "die Katze schläft jetzt", -4.0)], SEARCH),
        # a word that was not allowed, or another one
        (DOG, "Hund", [better(CAT, -6.0, forbidden=[[4, 9]]), KATER], SELECTION),
        (DOG, "Hund", [better(CAT, -6.0, forbidden=[[18, 23]]), KATER], MODEL),
        (DOG, "Hund", [better(CAT, -4.0, f"{REFERENCE}+{FULL}", forbidden=[[4, 9]])], SELECTION),  # first
        # the full vocabulary mends the error after a word that was not allowed, or before one (of a beam)
        (
            *("jetzt schläft der Hund", "Hund"),
            [better("heute schläft die Katze", -4.0, f"{FULL}+{REFERENCE}", forbidden=[[0, 5]])],
            SELECTION,
        ),
        (
            *("jetzt schläft der Hund heute", "Hund"),
            [better(NOW, -4.0, f"{FULL}+{REFERENCE}", forbidden=[[24, 29]])],
            SELECTION,
        ),
        (  # it could have written all of it
            *("jetzt schläft der Hund heute", "Hund"),
            [better(NOW, -4.0, f"{FULL}+{REFERENCE}", forbidden=[])],
            SEARCH,
        ),
        # nothing better is known
        (DOG, "Hund", [better(DOG.replace("heute", "jetzt"), -4.0)], UNDECIDED),
        (DOG, "Hund", [], UNDECIDED),
        # omissions: all that is missing is needed; an empty output has none
        (SHORT, "", [better(LITTLE, -6.0), candidate("exact search", f"{LITTLE} .", -4.0)], SEARCH),
        (
            SHORT,
            "",
            [better(LITTLE, -6.0), candidate("exact search", "der kleine Hund schläft", -4.0)],
            MODEL,
        ),
        (SHORT, "", [better(DOG, -4.0), EMPTY, candidate("beam 16", f"{SHORT} .", -4.5)], SEARCH),
    ],
)
def test_the_cause_of_an_error(text: str, marked: str, others: list[dict[str, Any]], origin: Origin) -> None:
    assert labelled(text, marked, *others).origin is origin


def test_with_all_words_it_writes_the_same() -> None:
    reference = better(CAT, -6.0, forbidden=[[4, 9]])
    assert labelled(DOG, "Hund", reference, own=f"{OUTPUT}+{FULL}").origin is MODEL


def test_scores_may_be_normalised_by_length() -> None:
    found = {by: labelled(DOG, "Hund", better(LONG, -6.0), by=by).origin for by in (0.0, 1.0)}
    assert found == {0.0: MODEL, 1.0: SEARCH}


def test_what_is_said_beside_the_cause() -> None:
    found = labelled(DOG, "Hund", better(CAT, -4.0))
    assert (found.marked, found.needed) == ("Hund", ("die", "Katze"))
    assert found.instead is found.better
    assert labelled(DOG, "Hund", better(CAT, -6.0)).instead.names == (OUTPUT,)
    keeps = labelled(DOG, "Hund", better(CAT, -4.0), candidate("exact search", SHORT, -3.0, outcome="proved"))
    assert (keeps.instead.names, keeps.instead.proved) == (("exact search",), True)
    assert labelled(SHORT, "", better(LITTLE, -6.0)).needed == ("kleine", "heute")
    beam = candidate("beam 16", "die Katze schläft jetzt", -4.0)
    assert labelled(DOG, "Hund", better(CAT, -9.0), beam).instead.names == ("beam 16",)
    unspaced = labelled("猫が寝る", "猫", better("犬が寝る", -4.0))
    assert (unspaced.marked, unspaced.needed) == ("猫", ("犬",))
    assert labelled("القط ينام", "القط", better("الكلب ينام", -4.0)).needed == ("الكلب",)


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


def test_a_mark_between_words_is_what_stands_there() -> None:
    found = evidence(
        candidate(OUTPUT, "der Hund schläft", -5.0), candidate(REFERENCE, "der Hund hier schläft", -4.0)
    )
    assert label(found, Mark(8, 8), [REFERENCE]).needed == ("hier",)
    assert label(found, Mark(3, 3), [REFERENCE]).origin is Origin.UNDECIDED


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
    given = "the outputs of gpt, human are given as texts: no model of the study made them"
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
