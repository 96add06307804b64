"""Convert a campaign between the database and `Content`.

`from_row` copies fields of the same name; systems and items are translated between names and numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import insert, or_, select
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human.formats.base import NotKept
from creamtea.human.making.campaigns import store_items
from creamtea.human.making.texts import first_node, segment_values, study_texts
from creamtea.human.media import (
    CAPTIONS,
    CheckedFile,
    FileStore,
    check_captions,
    check_file,
    check_stored,
    check_total,
    export_name,
    store_media,
)
from creamtea.human.record import (
    AnswerContent,
    Content,
    ItemContent,
    RaterContent,
    ScoreContent,
    TestLine,
    TestSetMetric,
    WholeTestSet,
    document_names,
    fields_without,
    known_test_set,
    media_types,
    of_systems,
    output_names,
    rating_items,
)
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, metrics_of, study_nodes
from creamtea.store.rows import from_row
from creamtea.store.tables import (
    Assignment,
    Campaign,
    Item,
    Rater,
    Rating,
    StudyRow,
)

BATCH = 2000  # rows per INSERT


# ---------------------------------------------------------------- out of the database
def collect(database: Database, name: str) -> Content:
    """Load everything of a campaign that an export holds, from one snapshot."""
    with database.session() as session:
        campaign = find_campaign(session, name)
        study = None if campaign.study_id is None else session.get_one(StudyRow, campaign.study_id).name
        own_items = select(Item).where(Item.campaign_id == campaign.id)
        items = session.scalars(own_items.order_by(Item.position)).all()
        own_raters = select(Rater).where(Rater.campaign_id == campaign.id)
        raters = session.scalars(own_raters.order_by(Rater.id)).all()
        positions = {item.id: item.position for item in items}
        names: dict[Any, str] = dict(enumerate(output_names(campaign.systems)))
        names |= {str(number): name for number, name in names.items()}  # as keys of JSON
        pseudonyms = {rater.id: rater.pseudonym for rater in raters}
        return from_row(
            Content,
            campaign,
            study=study,
            systems=tuple(campaign.systems),
            raters=tuple(from_row(RaterContent, rater) for rater in raters),
            items=tuple(_item(item, names, positions) for item in items),
            answers=tuple(_answers(session, campaign, positions, pseudonyms)),
            whole=None,
            files={},
        )


def _item(item: Item, names: dict[Any, str], positions: dict[int, int]) -> ItemContent:
    return from_row(
        ItemContent,
        item,
        segment=item.segment_index,
        context=tuple(item.context),
        references=tuple(item.references),
        outputs=tuple(item.outputs),
        output_drawn=item.output_drawn and tuple(item.output_drawn),
        original=None if item.original_id is None else positions[item.original_id],
        **of_systems(item, names),
    )


def _answers(
    session: Session, campaign: Campaign, positions: dict[int, int], pseudonyms: dict[int, str]
) -> list[AnswerContent]:
    """Return the answers to items that raters have answered or skipped."""
    names = output_names(campaign.systems)
    scores: dict[int, list[ScoreContent]] = defaultdict(list)
    ratings = select(Rating).join(Assignment).join(Item).where(Item.campaign_id == campaign.id)
    for rating in session.scalars(ratings.order_by(Rating.revision, Rating.system)):
        score = from_row(ScoreContent, rating, system=names[rating.system], at=rating.created_at)
        scores[rating.assignment_id].append(score)
    ended = or_(Assignment.submitted_at.is_not(None), Assignment.skipped_at.is_not(None))
    assignments = select(Assignment).join(Item).where(Item.campaign_id == campaign.id, ended)
    answers = [
        from_row(
            AnswerContent,
            assignment,
            item=positions[assignment.item_id],
            rater=pseudonyms[assignment.rater_id],
            order=tuple(tuple(names[system] for system in group) for group in assignment.order),
            assigned_at=assignment.created_at,
            scores=tuple(scores[assignment.id]),
        )
        for assignment in session.scalars(assignments)
    ]
    return sorted(answers, key=lambda answer: (answer.item, answer.rater))


# ---------------------------------------------------------------- into the database
def check_free(session: Session, name: str) -> None:
    """Raise InputError if a campaign of this name exists."""
    if session.scalar(select(Campaign.id).where(Campaign.name == name)) is not None:
        raise InputError(f"campaign {name!r} already exists: import under another name", about="name")


def store_import(
    database: Database,
    content: Content,
    actor: str,
    origin: str,
    not_kept: Sequence[NotKept] = (),
    notices: Sequence[NotKept] = (),
    media_sizes: Mapping[str, int] | None = None,
) -> None:
    """Store a closed campaign without a study: it can be analysed, not rated.

    One transaction stores all of it or nothing. The audit log gets `actor` and `origin` (a file's name).
    `media_sizes`: the bytes of each file of an item, by SHA-256. InputError if a campaign of this name
    exists.
    """
    with database.transaction() as session:
        check_free(session, content.name)
        campaign = Campaign(
            **fields_without(content, "study", "raters", "items", "answers", "whole", "files")
        )
        campaign.state, campaign.closed_at = "closed", content.closed_at or database.now(session)
        session.add(campaign)
        session.flush()
        raters = {
            person.pseudonym: Rater(campaign_id=campaign.id, **vars(person)) for person in content.raters
        }
        session.add_all(raters.values())
        items = store_items(session, campaign, content.items)
        shown = (entry for item in content.items for entry in item.media)
        store_media(session, campaign.id, shown, media_sizes or {})
        _store_answers(session, content, raters, items)
        detail = {
            "file": origin,
            "items": len(items),
            "ratings": content.ratings,
            "left_out": [str(part) for part in not_kept],
            "notices": [str(part) for part in notices],
        }
        audit.record(session, campaign.id, actor, audit.IMPORTED, detail=detail)


def _store_answers(
    session: Session, content: Content, raters: dict[str, Rater], items: dict[int, Item]
) -> None:
    numbers = content.numbers
    assignments = [
        Assignment(
            **fields_without(answer, "item", "rater", "order", "assigned_at", "scores"),
            item_id=items[answer.item].id,
            rater_id=raters[answer.rater].id,
            order=[[numbers[system] for system in group] for group in answer.order],
            lease_until=answer.submitted_at or answer.skipped_at or answer.assigned_at,
            created_at=answer.assigned_at,
        )
        for answer in content.answers
    ]
    session.add_all(assignments)
    session.flush()
    scores = (
        fields_without(score, "system", "at")
        | {"assignment_id": assignment.id, "system": numbers[score.system], "created_at": score.at}
        for assignment, answer in zip(assignments, content.answers, strict=True)
        for score in answer.scores
    )
    while batch := list(islice(scores, BATCH)):
        session.execute(insert(Rating), batch)


def whole_test_set(database: Database, content: Content) -> WholeTestSet:
    """Read the study's whole test set; without a study, the segments of the items.

    InputError if the study's outputs are missing or differ from the rated outputs.
    """
    with database.session() as session:
        study_id = find_campaign(session, content.name).study_id
        if study_id is None:
            return known_test_set(content)
        study = session.get_one(StudyRow, study_id)
        lines = study_texts(session, study, content.test_set, content.systems).lines(content.test_set)
        documents = document_names(content, [line.index for line in lines])
        test_lines = tuple(
            TestLine(line.index, document, line.source, line.reference, line.outputs)
            for line, document in zip(lines, documents, strict=True)
        )
        _check_rated_texts(content, test_lines)
        metrics, left_out = _metrics(session, study_id, content, [line.index for line in lines])
    return WholeTestSet(test_lines, tuple(metrics), tuple(left_out))


def _check_rated_texts(content: Content, lines: Sequence[TestLine]) -> None:
    """Raise InputError if the study's outputs differ from the rated outputs.

    The study may have run again since, and scores belong to the texts that were rated.
    """
    by_index = {line.index: line for line in lines}
    for item in rating_items(content):
        line = by_index.get(item.segment)
        for system, output in zip(item.systems, item.outputs, strict=True):
            if line is None or line.outputs[content.systems.index(system)] != output:
                raise InputError(
                    f"item {item.position}: the study's output of system {system!r} for segment "
                    f"{item.segment} is not the one that was rated; export as csv or jsonl, which "
                    "hold the rated texts"
                )


def _metrics(
    session: Session, study_id: int, content: Content, indices: Sequence[int]
) -> tuple[list[TestSetMetric], list[str]]:
    """Return the metrics that every system has, and descriptions of the others."""
    nodes = study_nodes(session, study_id, "score")
    names = dict.fromkeys(
        str(node.labels["metric"]) for node in nodes if node.labels["test_set"] == content.test_set
    )
    metrics, left_out = [], []
    for name in names:
        labels = {"test_set": content.test_set, "metric": name}
        firsts = (first_node(nodes, system=system, **labels) for system in content.systems)
        steps = [node for node in firsts if node is not None and node.state == "succeeded"]
        values = metrics_of(session, [step.key for step in steps])
        whole = tuple(
            metric.value
            for step in steps
            for metric in values.get(step.key, ())
            if (metric.name, metric.subject) == (step.params["metric"]["kind"], "")
            and metric.value is not None
        )
        if len(whole) < len(content.systems):
            left_out.append(f"metric {name}: not every system has it")
            continue
        found = [segment_values(session, step.key) for step in steps]
        segments = tuple(
            tuple(scores[index] for index in indices) for scores in found if scores.keys() >= {*indices}
        )
        if 0 < len(segments) < len(found):
            left_out.append(f"metric {name}, segments: not every system has them")
            segments = ()
        metrics.append(TestSetMetric(name, whole, segments))
    return metrics, left_out


# ---------------------------------------------------------------- files of items


def check_kept(content: Content, store: FileStore | None) -> None:
    """Raise InputError unless the store has the files that the items name."""
    for digest, media in media_types(content).items():
        check_stored(_needed(store), digest, media)


def write_media(content: Content, store: FileStore | None, folder: Path) -> list[Path]:
    """Write the files that items name into a new folder; no folder without files."""
    wanted = media_types(content)
    if not wanted:
        return []
    store = _needed(store)
    folder.mkdir()
    written = []
    for digest, media in wanted.items():
        path = folder / export_name(digest, media)
        with store.open(digest) as kept, path.open("wb") as copy:
            while chunk := kept.read(1 << 20):
                copy.write(chunk)
        written.append(path)
    return written


def read_media_folder(
    content: Content, folder: Path, elsewhere: Mapping[str, Path]
) -> dict[str, CheckedFile]:
    """Check the files that the items name, and return them by SHA-256.

    `elsewhere`: files under other names, by SHA-256. InputError for a file that is missing, changed or not
    allowed.
    """
    found: dict[str, CheckedFile] = {}
    for digest, media in media_types(content).items():
        path = elsewhere.get(digest, folder / export_name(digest, media))
        place = f"{path.parent.name}/{path.name}"
        if not path.is_file():
            raise InputError(f"{place}: missing, and an item names it: import the whole export")
        file = (check_captions if media == CAPTIONS else check_file)(path, place)
        if file.digest != digest or file.type != media:
            raise InputError(f"{place}: not the file that was exported: its name is the SHA-256 of that one")
        found[digest] = file
    check_total((file.size for file in found.values()), folder.name)
    return found


def keep_media(media: Mapping[str, CheckedFile], store: FileStore | None) -> None:
    """Put the files of an import into the artefact store."""
    for file in media.values():
        _needed(store).put_file(file.path)


def _needed(store: FileStore | None) -> FileStore:
    if store is None:
        raise ValueError("a campaign with files needs the artefact store")
    return store
