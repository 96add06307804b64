"""A programme: one file for the human evaluation of many translation directions.

`programme.yaml` has the keys of a campaign file that all directions share, and under `directions` each
direction's own keys, which override the shared ones. Each direction becomes a campaign PROGRAMME-DIRECTION,
like any other; the database only stores `Campaign.programme`.
"""

from __future__ import annotations

import copy
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.document.document import YamlDocument, apply_override, read_document
from creamtea.document.mistakes import REQUIRED, Mistake, StudyErrors, one_of, shown
from creamtea.document.values import NAME_CHARACTERS
from creamtea.errors import InputError, NotInDatabase
from creamtea.human.making import campaigns
from creamtea.human.making.campaign_file import Folder, LoadedCampaign, check_campaign, commented
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.rating import raters
from creamtea.human.rating.raters import RaterProgress
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

OUTPUTS = "system-outputs"
KEYS = "name, texts, protocol, directions, …"
DIRECTIONS = "directions"
DIRECTION = re.compile(f"[A-Za-z0-9][{NAME_CHARACTERS}]*")


@dataclass(frozen=True)
class Programme:
    name: str
    directions: Mapping[str, LoadedCampaign]


@contextmanager
def naming(direction: str) -> Iterator[None]:
    """Begin an InputError's message with the direction that it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"direction {direction}: {error}", error.about) from None


def load_programme(path: Path, overrides: Sequence[str] = ()) -> Programme:
    """Read a programme, apply the overrides (`key=value` each) and check it.

    StudyErrors with every mistake of all directions, each once; InputError if the file cannot be read at all.
    """
    document = read_document(path, KEYS, kind="a programme (.yaml)")
    for order, text in enumerate(overrides):
        apply_override(document, text, order)
    data, found = document.data, list(document.mistakes)
    directions = data.get(DIRECTIONS)
    if DIRECTIONS not in data:
        found.append(Mistake((DIRECTIONS,), "", REQUIRED))
    elif not isinstance(directions, dict) or not directions:
        found.append(Mistake((DIRECTIONS,), shown(directions), "a block of directions (en-de: {…})"))
    else:
        for name, own in directions.items():
            if not DIRECTION.fullmatch(name):
                found.append(Mistake((DIRECTIONS, name), shown(name), "a name as en-de or news.en-de"))
            elif not isinstance(own, dict | None):
                found.append(Mistake((DIRECTIONS, name), shown(own), "a block of keys, or nothing"))
            elif own and "name" in own:
                allowed = "no name: a direction's campaign is called after programme and direction"
                found.append(Mistake((DIRECTIONS, name, "name"), shown(own["name"]), allowed))
    if not isinstance(name := data.get("name"), str) or not name.strip():
        wrong_name = (shown(data["name"]), "a name in text") if "name" in data else ("", REQUIRED)
        found.append(Mistake(("name",), *wrong_name))
    lines = [mistake.line(document.place(mistake.path)) for mistake in found]
    loaded = {}
    if not lines and isinstance(directions, dict):
        for direction in directions:
            try:
                campaign = check_campaign(_direction(document, direction), Folder(path.parent))
                loaded[direction] = replace(campaign, direction=direction)
            except StudyErrors as error:
                lines += error.lines
    if lines:
        raise StudyErrors(lines, document.name)
    return Programme(data["name"], loaded)


def _direction(document: YamlDocument, direction: str) -> YamlDocument:
    """Return a direction's campaign file: the shared keys, overridden by its own, each with its place."""
    own = document.data[DIRECTIONS][direction] or {}
    data = copy.deepcopy({key: value for key, value in document.data.items() if key != DIRECTIONS})
    places = {path: place for path, place in document.places.items() if path[:1] != (DIRECTIONS,)}
    for key, value in copy.deepcopy(own).items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            data[key] |= value
        else:
            data[key] = value
    data["name"] = campaign_name(str(document.data["name"]), direction)
    if isinstance(texts := data.get("texts"), dict):
        texts.setdefault("languages", direction)
    part = document.part((DIRECTIONS, direction), data)
    part.places = places | part.places
    return part


def campaign_name(programme: str, direction: str) -> str:
    return f"{programme}-{direction}"


def campaigns_of(session: Session, programme: str) -> dict[str, Campaign]:
    """Return a programme's campaigns by direction, in the file's order; NotInDatabase for an unknown one."""
    rows = session.scalars(
        select(Campaign).where(Campaign.programme == programme).order_by(Campaign.id)
    ).all()
    if not rows:
        known = session.scalars(select(Campaign.programme).where(Campaign.programme.is_not(None)).distinct())
        choices = one_of(sorted(filter(None, known)), programme, "there are")
        raise NotInDatabase(f"there is no programme {programme!r}; {choices}")
    return {direction_of(row): row for row in rows}


def direction_of(campaign: Campaign | CampaignSummary) -> str:
    return campaign.name.removeprefix(campaign_name(campaign.programme or "", ""))


@dataclass(frozen=True)
class DirectionProgress:
    direction: str
    campaign: CampaignSummary
    raters: list[RaterProgress]

    @property
    def share(self) -> float:
        return self.campaign.ratings / max(1, self.campaign.wanted)

    @property
    def standings(self) -> str:
        """The number of raters in each state: "2 finished, 1 taking part"; "" without raters."""
        counts = Counter(person.standing for person in self.raters)
        return ", ".join(f"{count:,} {standing}" for standing, count in counts.items())


def progress_of(database: Database, programme: str) -> list[DirectionProgress]:
    """Return the progress of every direction and of its raters."""
    with database.session() as session:
        summaries = campaigns.summarised(session, [*campaigns_of(session, programme).values()])
    return [
        DirectionProgress(direction_of(each), each, raters.overview(database, each.id)) for each in summaries
    ]


# ---------------------------------------------------------------- writing


def directions_in(folder: Path) -> list[str]:
    """Return the directions of a folder in mt-metrics-eval's layout; InputError if there are none."""
    outputs = folder / OUTPUTS
    directions = sorted(path.name for path in outputs.iterdir() if path.is_dir()) if outputs.is_dir() else []
    if not directions:
        raise InputError(f"{outputs}: no directions: give a folder with {OUTPUTS}/PAIR/SYSTEM.txt")
    return directions


def new_texts(folder: Path, file: Path, directions: Sequence[str]) -> dict[str, Any]:
    """Return the keys and values of a new `file` for the folder.

    Bad references are off if a direction has no references to make them from.
    """
    relative = os.path.relpath(folder.resolve(), file.parent.resolve())
    values = {"texts.folder": relative, "protocol.kind": "esa"}
    unable = any(not [*(folder / "references").glob(f"{pair}.*.txt")] for pair in directions)
    return values | ({"controls.bad_references": 0} if unable else {})


def new_programme(folder: Path, file: Path) -> str:
    """Return a programme file for a folder in mt-metrics-eval's layout, with the meaning of every key."""
    directions = directions_in(folder)
    values = {"name": file.stem, "sample.items": 100} | new_texts(folder, file, directions)
    text = commented(values, "A programme of creamtea: `creamtea programme create FILE` makes its drafts.")
    text += "\ndirections: # what is each direction's own; it overrides the keys above\n"
    return text + "".join(f"  {name}: {{}}\n" for name in directions)
