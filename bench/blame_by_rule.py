"""Where errors come from, with marks that a rule makes: every difference from an output that is known to be
better, or from the reference.

    creamtea run studies/demo.yaml
    python bench/blame_by_rule.py demo --against softmax-greedy=softmax-beam4 --against softmax-nvs=reference

makes a campaign for each --against SYSTEM=BETTER (BETTER: another system, or "reference") in the database
of CREAMTEA_DATABASE_URL, looks into it as `creamtea blame` does and prints the shares. Where the better
output is another search's with the same model and words, only those are taken whose score is higher.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select

from creamtea.blame.gathering import Settings as Searches
from creamtea.blame.gathering import gather
from creamtea.blame.labels import Mark, marks_of_edit
from creamtea.cli.blame import shares
from creamtea.human.making.launching import registration
from creamtea.report.human.build import build_human
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import Assignment, Campaign, Hypothesis, Item, Rater, Rating, Segment, StepFile

REFERENCE = "reference"
GOOD, BAD = 95, 50  # points of the better output, and of one with marks


@dataclass(frozen=True)
class Disturbed:
    """A segment on which a system's output and a better one differ."""

    index: int
    source: str
    output: str
    better: str
    marks: tuple[Mark, ...]


def spans(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Each a major error, as a payload of ESA has it."""
    return [
        {"severity": "major"}
        if mark.start is None
        else {"start": mark.start, "end": mark.end, "severity": "major"}
        for mark in marks
    ]


def disturbed(
    database: Database, study: str, test_set: str, system: str, better: str, higher: bool
) -> list[Disturbed]:
    """`higher`: only where the score of the better output is higher, of two searches with one model."""
    with database.session() as session:
        nodes = [
            node
            for node in study_nodes(session, find_study(session, study).id)
            if node.labels.get("test_set") == test_set
        ]
        (texts,) = [node.key for node in nodes if node.kind == "test_set"]

        def outputs(name: str) -> dict[int, Hypothesis]:
            key = next(
                node.key for node in nodes if node.labels.get("system") == name and node.kind == "decode"
            )
            rows = session.scalars(select(Hypothesis).where(Hypothesis.step_key == key))
            return {row.index: row for row in rows}

        own, other = outputs(system), {} if better == REFERENCE else outputs(better)
        found = []
        for segment in session.scalars(
            select(Segment).where(Segment.step_key == texts).order_by(Segment.index)
        ):
            first, second = own[segment.index], other.get(segment.index)
            text = segment.reference if second is None else second.text
            if higher and second is not None and not (second.score or 0) > (first.score or 0) + 1e-3:
                continue
            if marks := marks_of_edit(first.text, text):
                found.append(Disturbed(segment.index, segment.source, first.text, text, tuple(marks)))
        return found


def proved(
    database: Database, store: ArtefactStore, study: str, test_set: str, system: str
) -> dict[int, bool]:
    """By segment whether exact search proved the system's output; empty for other searches."""
    with database.session() as session:
        node = next(
            node
            for node in study_nodes(session, find_study(session, study).id, "decode")
            if node.labels["system"] == system and node.labels["test_set"] == test_set
        )
        file = session.get(StepFile, (node.key, "exact.jsonl"))
        if file is None:
            return {}
        with store.open(file.digest) as lines:
            rows = [json.loads(line) for line in lines]
    return {row["index"]: row["outcome"] == "proved" for row in rows}


def campaign_by_rule(
    database: Database, study: str, test_set: str, name: str, systems: Sequence[str], found: list[Disturbed]
) -> None:
    """A launched campaign with ESA marks by one rater, "rule"; it replaces an earlier one. `systems`: the one
    with marks and the better one, if that is a system's."""
    with database.transaction() as session:
        session.execute(delete(Campaign).where(Campaign.name == name))
        row, now = find_study(session, study), database.now(session)
        campaign = Campaign(
            name=name,
            study_id=row.id,
            test_set=test_set,
            protocol="esa",
            systems=list(systems),
            source_language=row.spec["languages"]["source"],
            target_language=row.spec["languages"]["target"],
            ratings_per_item=1,
            seed=1,
            instructions="",
            settings={},
            state="launched",
            created_at=now,
            launched_at=now,
        )
        session.add(campaign)
        session.flush()
        rater = Rater(campaign_id=campaign.id, pseudonym="rule", created_at=now)
        session.add(rater)
        session.flush()
        for one in found:
            texts = [one.output, one.better][: len(systems)]
            answers = [(BAD, spans(one.marks)), (GOOD, [])]
            for system, (text, (score, marked)) in enumerate(zip(texts, answers, strict=False)):
                _rate(session, campaign, rater, one, system, text, score, marked)
        session.flush()
        campaign.registered = registration(session, campaign)


def _rate(
    session: Any,
    campaign: Campaign,
    rater: Rater,
    one: Disturbed,
    system: int,
    text: str,
    score: int,
    marked: list[dict[str, Any]],
) -> None:
    position = one.index * len(campaign.systems) + system
    item = Item(
        campaign_id=campaign.id,
        position=position,
        kind="rated",
        segment_index=one.index,
        document="",
        source=one.source,
        context=[],
        systems=[system],
        outputs=[text],
        weight=1.0,
    )
    session.add(item)
    session.flush()
    now = rater.created_at
    assignment = Assignment(
        item_id=item.id,
        rater_id=rater.id,
        order=[[system]],
        lease_until=now,
        created_at=now,
        submitted_at=now,
        skip_reason="",
        comment="",
    )
    session.add(assignment)
    session.flush()
    payload = {"score": score, "spans": marked}
    session.add(
        Rating(
            assignment_id=assignment.id,
            system=system,
            revision=1,
            step=score,
            payload=payload,
            created_at=now,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study")
    parser.add_argument("--test-set", default="test")
    parser.add_argument("--against", action="append", required=True, metavar="SYSTEM=BETTER")
    parser.add_argument("--beam", type=int, default=Searches.beam)
    parser.add_argument("--states", type=int, default=Searches.states)
    chosen = parser.parse_args()
    settings = Settings.load()
    store, database = ArtefactStore(settings.artefacts), open_database(settings.database_url)
    for pair in chosen.against:
        system, better = pair.split("=")
        with database.session() as session:
            systems = find_study(session, chosen.study).spec["systems"]
        same = better != REFERENCE and systems[system]["variant"] == systems[better]["variant"]
        searched = same and systems[system]["selection"] == systems[better]["selection"]
        found = disturbed(database, chosen.study, chosen.test_set, system, better, higher=searched)
        proofs = {} if better == REFERENCE else proved(database, store, chosen.study, chosen.test_set, better)
        name, began = f"rule: {system} against {better}", time.monotonic()
        rated = [system] if better == REFERENCE else [system, better]
        campaign_by_rule(database, chosen.study, chosen.test_set, name, rated, found)
        gathered = gather(
            database, store, chosen.study, name, Searches(chosen.beam, chosen.states), only=[system]
        )
        seconds = time.monotonic() - began
        print(f"{name}: {gathered.now} outputs in {seconds:.0f} s")
        if proofs:
            of_marked = sum(proofs[one.index] for one in found)
            print(
                f"  exact search proved {sum(proofs.values())} of {len(proofs)} sentences, of those with "
                f"marks {of_marked} of {len(found)}; where it did not, the best that it found is taken"
            )
        for line in shares(build_human(database, name)):
            print(f"  {line}")


if __name__ == "__main__":
    main()
