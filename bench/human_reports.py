"""Whether reports of human evaluations keep their numbers: the same campaigns, reported by two versions.

    python bench/human_reports.py fill HOME --data DIR       # once, with the older version
    python bench/human_reports.py report HOME -o before.json # with each version
    python bench/human_reports.py compare before.json after.json

`fill` makes a database of four published campaigns (WMT 2022 crowd DA, WMT 2023 ESA and MQM, MQM of TED
talks; DIR holds wmt22-da-de-en, wmt23-esa-en-de and mqm-ted-zh-en) and of a simulated campaign for each
protocol, with documents, equal outputs, bad references, repeats, skipped items, an excluded rater and changed
answers. `report` upgrades the database and asks `creamtea campaign report --json` and `campaign raters list
--json` for each campaign. `compare` lists what differs, to the last digit, and exits with 1 if it finds any.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

SYSTEMS, RATERS, SEGMENTS, SEED = 4, 6, 60, 1
TAKEN = (["campaign", "report"], ["campaign", "raters", "list"])
ESA = "wmt23-esa-en-de/campaign"
WMT22 = "wmt22-da-de-en"
LANGUAGES = ["--source-language", "eng", "--target-language", "deu"]
PUBLISHED = {
    "deen": [
        *("--from", f"{WMT22}/ad-deen-good-stnd-redup.csv", "--format", "appraise"),
        *("--rater-statistics", f"{WMT22}/ad-deen-trk-mean-sd.txt"),
    ],
    "esa": ["--from", f"{ESA}/240520rc6ESA.scores.csv", "--protocol", "esa", *LANGUAGES],
    "mqm": ["--from", f"{ESA}/240521rc6MQM.scores.csv", "--protocol", "mqm", *LANGUAGES],
    "ted": [
        *("--from", "mqm-ted-zh-en/mqm_ted_zhen.tsv"),
        *("--source-language", "zh", "--target-language", "en"),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    filling = commands.add_parser("fill")
    filling.add_argument("home", type=Path)
    filling.add_argument("--data", type=Path, required=True)
    reporting = commands.add_parser("report")
    reporting.add_argument("home", type=Path)
    reporting.add_argument("-o", "--output", type=Path, required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "fill":
        fill(arguments.home.resolve(), arguments.data)
    elif arguments.command == "report":
        found = report(arguments.home.resolve())
        arguments.output.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    else:
        before, after = (json.loads(file.read_text("utf-8")) for file in (arguments.before, arguments.after))
        differences = list(different(before, after, ""))
        print("\n".join(differences) or "no difference")
        raise SystemExit(1 if differences else 0)


def creamtea(home: Path, *arguments: str) -> str:
    environment = os.environ | {"CREAMTEA_HOME": str(home), "CREAMTEA_DATABASE_URL": url(home)}
    command = [str(Path(sys.executable).with_name("creamtea")), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"creamtea {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def url(home: Path) -> str:
    return f"sqlite:///{home / 'creamtea.db'}"


def fill(home: Path, data: Path) -> None:
    home.mkdir(parents=True)
    for name, options in PUBLISHED.items():
        files = [str(data / option) if "/" in option else option for option in options]
        creamtea(home, "campaign", "import", name, *files)
    database = open_database(url(home))
    try:
        for protocol in protocol_names(rated_here=True):
            simulate(database, find_protocol(protocol))
    finally:
        database.close()


def simulate(database: Database, protocol: Protocol) -> None:
    """A campaign in which each item has two raters, all from the same seed."""
    rng = np.random.default_rng(SEED)
    quality = rng.normal(0, 1, SEGMENTS)
    with database.transaction() as session:
        now = database.now(session)
        campaign = Campaign(
            name=f"simulated-{protocol.name}",
            test_set="test",
            protocol=protocol.name,
            systems=[f"system-{system}" for system in range(SYSTEMS)],
            source_language="en",
            target_language="de",
            ratings_per_item=2,
            seed=SEED,
            instructions="",
            settings={"domains": {"d0": "news", "d1": "chat"}},
            state="launched",
            created_at=now,
            launched_at=now,
        )
        session.add(campaign)
        session.flush()
        people = [
            Rater(
                campaign_id=campaign.id,
                pseudonym=f"r{number}",
                created_at=now,
                consented_at=now,
                excluded_at=now if number == RATERS - 1 else None,
            )
            for number in range(RATERS)
        ]
        session.add_all(people)
        items: list[Item] = []

        def add(kind: str, segment: int, systems: list[int], outputs: list[str], **more: Any) -> None:
            items.append(
                Item(
                    campaign_id=campaign.id,
                    position=len(items),
                    kind=kind,
                    segment_index=segment,
                    document=f"d{segment // 10}",
                    source=f"source of segment {segment} in some words",
                    context=[],
                    systems=systems,
                    outputs=outputs,
                    weight=1.0 if kind == "rated" else 0.0,
                    **more,
                )
            )
            session.add(items[-1])
            session.flush()

        for segment in range(SEGMENTS):
            texts = [f"output {segment} of system {max(0, at - segment % 2)}" for at in range(SYSTEMS)]
            for group in protocol.shown_together(texts, "all", 0):
                own = [texts[at] for at in group]
                add("rated", segment, list(group), own)
                original = items[-1].id
                if segment % 10 == 3:
                    spoilt = ["fully other words", *own[1:]]
                    add(
                        "bad-reference", segment, list(group), spoilt, original_id=original, degraded=group[0]
                    )
                if segment % 10 == 7:
                    add("repeat", segment, list(group), own, original_id=original)
        severity = rng.normal(0, 0.4, RATERS)
        for item in items:
            for rater in rng.choice(RATERS, 2, replace=False).tolist():
                answer(
                    session,
                    protocol,
                    item,
                    people[rater],
                    float(quality[item.segment_index] + severity[rater]),
                    rng,
                )


def answer(
    session: Any, protocol: Protocol, item: Item, rater: Rater, level: float, rng: np.random.Generator
) -> None:
    """An assignment with its ratings: one in 25 is skipped, one in 20 changed once."""
    equal: dict[str, list[int]] = {}
    for system, text in zip(item.systems, item.outputs, strict=True):
        equal.setdefault(text, []).append(system)
    when = rater.created_at + timedelta(seconds=60 * item.position)
    skipped = rng.random() < 0.04
    given = Assignment(
        item_id=item.id,
        rater_id=rater.id,
        order=list(equal.values()),
        draft=None,
        lease_until=when,
        created_at=when,
        submitted_at=None if skipped else when,
        skipped_at=when if skipped else None,
        skip_reason="unclear" if skipped else "",
        comment="",
        active_ms=int(1000 * rng.gamma(4, 5)),
    )
    session.add(given)
    session.flush()
    if skipped:
        return
    for revision in range(1, 3 if rng.random() < 0.05 else 2):
        answers = [
            invented(protocol, level - 0.3 * systems[0] - 1.5 * (systems[0] == item.degraded), text, rng)
            for text, systems in equal.items()
        ]
        if protocol.relative:  # of two outputs, one gains what the other loses
            answers[1:] = [protocol.scale.steps - 1 - answers[0]] * len(answers[1:])
        scored = protocol.read(answers, list(equal))
        for systems, score in zip(equal.values(), scored, strict=True):
            session.add_all(
                Rating(
                    assignment_id=given.id,
                    system=system,
                    revision=revision,
                    step=score.step,
                    payload=score.payload,
                    document_step=None,
                    created_at=when,
                )
                for system in systems
            )


def invented(protocol: Protocol, level: float, output: str, rng: np.random.Generator) -> Any:
    """An answer about an output, better the higher the level (about −3 to 3)."""
    last = protocol.scale.steps - 1
    step = int(np.clip(round(last * (0.6 + 0.15 * level + rng.normal(0, 0.1))), 0, last))
    if protocol.edits_text:
        pieces = output.split()
        return {"text": " ".join(piece for piece in pieces if rng.random() < 0.8 + 0.05 * level) or pieces[0]}
    if not protocol.marks_errors:
        return step
    taxonomy = protocol.usual_taxonomy
    assert taxonomy is not None
    severities = [severity.name for severity in taxonomy.severities]
    categories = [path for category in taxonomy.categories for path in category.paths]
    spans = []
    for at in range(int(rng.poisson(max(0.1, 1 - 0.4 * level)))):
        start = min(at * 4, len(output) - 3)
        span: dict[str, Any] = {"start": start, "end": start + 2, "severity": str(rng.choice(severities))}
        spans.append(span | ({"category": categories[rng.integers(len(categories))]} if categories else {}))
    return {"spans": spans} if protocol.name == "mqm" else {"spans": spans, "score": step}


def report(home: Path) -> dict[str, Any]:
    creamtea(home, "db", "upgrade")
    names = [row["name"] for row in json.loads(creamtea(home, "campaign", "list", "--json"))]
    return {
        f"{name}: {' '.join(command)}": json.loads(creamtea(home, *command, name, "--json"))
        for name in names
        for command in TAKEN
    }


def different(before: Any, after: Any, at: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key not in before or key not in after:
                yield f"{at}/{key}: only {'before' if key in before else 'after'}"
            else:
                yield from different(before[key], after[key], f"{at}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            yield from different(*pair, f"{at}/{place}")
    elif before != after or type(before) is not type(after):
        yield f"{at}: {json.dumps(before)[:200]} → {json.dumps(after)[:200]}"


if __name__ == "__main__":
    main()
