"""What commands share: options, the database, the artefacts, the executor, submitting a study."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from creamtea.access import audit
from creamtea.cli.printing import say
from creamtea.document.mistakes import Mistake, StudyErrors, StudyWarning, one_of, shown
from creamtea.errors import InputError, NotInDatabase
from creamtea.files import lines_of, read_storable, replacing, scratch_folder
from creamtea.settings import Settings, sqlite_url
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.engines import describe, missing_file, parse_url
from creamtea.store.queries import find_study
from creamtea.store.rows import row_id

if TYPE_CHECKING:
    from creamtea.engine.executors.base import Executor
    from creamtea.human.making.campaign_file import LoadedCampaign
    from creamtea.orders.submission import Submission
    from creamtea.study.loader import LoadedStudy

EXECUTORS = ("ray", "inline")
MAX_BYTES = 5_000_000  # of a file given to a command

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="The study.")]
StudyName = Annotated[str, typer.Argument(metavar="NAME", help="The study's name (not its file).")]
StudyOrNumber = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The study's name (its newest submission), or its number."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The folder that the study's files are relative to, by default its own."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the study. Repeatable."),
]
ExecutorName = Annotated[
    str, typer.Option("--executor", metavar="|".join(EXECUTORS), help="Where steps run: Ray or this process.")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", envvar="RAY_ADDRESS", help="A Ray cluster; without it, this machine."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")]
# of campaigns, programmes and links
ACTOR = audit.COMMAND_LINE
CampaignName = Annotated[str, typer.Argument(metavar="NAME", help="The campaign.")]
Surplus = Annotated[
    bool, typer.Option("--surplus", help="Allow more links than there is work for: not everybody comes.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the campaign's log keeps it.")]


@contextmanager
def mistakes_as_json(wanted: bool) -> Iterator[None]:
    """Print the mistakes of a file as JSON if `wanted`, and exit as an error would."""
    try:
        yield
    except InputError as error:
        if not wanted:
            raise
        lines = error.lines if isinstance(error, StudyErrors) else [str(error)]
        say(json.dumps({"valid": False, "mistakes": lines}, ensure_ascii=False))
        raise typer.Exit(error.exit_code) from None


def write_new(output: Path, text: str, force: bool) -> None:
    """Write a file. InputError if it exists, unless `force` is given."""
    if output.exists() and not force:
        raise InputError(f"{output} exists: choose another with --output, or overwrite it with --force")
    with replacing(output) as file:
        file.write_text(text, encoding="utf-8")


def listed_raters(path: Path | None) -> list[str]:
    """Read the lines of a file given to --raters. InputError if it is not text."""
    if path is None:
        return []
    where = f"--raters {path}"
    return lines_of(read_storable(path, where, MAX_BYTES), where)


def names(option: str, listed: str) -> list[str]:
    """Read "a, b" as ["a", "b"]. InputError for an empty list."""
    separate = [name.strip() for name in listed.split(",") if name.strip()]
    if not separate:
        raise InputError(f"{option}: give names with commas between them")
    return separate


@contextmanager
def opened_database() -> Iterator[Database]:
    """Open the database, and make it if there is none: for a command that may be the first one."""
    database = open_database(Settings.load().database_url)
    try:
        yield database
    except NotInDatabase as error:
        raise InputError(f"{error} (looked in {describe(database.url)})") from error
    finally:
        database.close()


@contextmanager
def existing_database() -> Iterator[Database]:
    """Open the database for a command that needs what is stored there.

    InputError if there is none, so that no database is left behind in a wrong folder.
    """
    missing = missing_file(parse_url(Settings.load().database_url))
    if missing is not None:
        raise InputError(
            f"there is no database at {missing}; `cd` to the folder where it was made, name its place in "
            "CREAMTEA_HOME (or CREAMTEA_DATABASE_URL), or make one: `creamtea run STUDY.yaml`"
        )
    with opened_database() as database:
        yield database


@contextmanager
def existing_or_empty_database() -> Iterator[Database]:
    """Open the database, or an empty one for a command that also shows something without studies.

    The empty database lasts as long as the command, and a line says that it is empty.
    """
    missing = missing_file(parse_url(Settings.load().database_url))
    if missing is None:
        with opened_database() as database:
            yield database
        return
    say(f"creamtea: there is no database at {missing}, so nothing here belongs to a study", err=True)
    with scratch_folder("empty") as folder:
        database = open_database(sqlite_url(Path(folder, "empty.db")))
        try:
            yield database
        finally:
            database.close()


def artefact_store(writable: bool = True) -> ArtefactStore:
    """Open the artefact store. With `writable`, InputError if it cannot be written."""
    store = ArtefactStore(Settings.load().artefacts)
    if writable:
        store.check_writable()
    return store


def study_asked_for(database: Database, asked: str) -> str | int:
    """Return the study's name, or its number if no study has that name, for `find_study`.

    InputError if there is neither.
    """
    with database.session() as session:
        try:
            find_study(session, asked)
        except InputError:
            number = row_id(asked)
            if number is None:
                raise
            find_study(session, number)
            return number
    return asked


def make_executor(name: str, address: str | None) -> Executor:
    """Make an executor. InputError if it is unknown or does not use the address."""
    if name not in EXECUTORS:
        raise InputError(f"--executor {name}: unknown executor; use {' or '.join(EXECUTORS)}")
    if name == "inline":
        if address:
            raise InputError("--address names a Ray cluster, which --executor inline does not use")
        from creamtea.engine.executors.inline import InlineExecutor

        return InlineExecutor()
    from creamtea.engine.executors.ray import RayExecutor

    return RayExecutor(address or "")


def data_folder(study: Path, data: Path | None) -> Path:
    """Return the folder that the study's files are relative to: --data, or the study's own folder."""
    return study.parent if data is None else data


def submit_study(
    database: Database,
    store: ArtefactStore,
    path: Path,
    data: Path | None,
    overrides: Sequence[str] | None,
    priority: int = 0,
) -> Submission:
    """Validate, plan and queue the study in the file, and show its warnings."""
    from creamtea.orders.submission import submit
    from creamtea.study.loader import load_study
    from creamtea.study.plan import plan
    from creamtea.study.warnings import warnings_of

    loaded = load_study(path, overrides or [])
    load_campaigns(loaded)
    root = data_folder(path, data)
    planned = plan(loaded.study, root, loaded.errors)
    warnings = tuple(warnings_of(loaded.study, planned, root, loaded.place_of))
    show_warnings(warnings)
    submission = submit(database, store, planned, loaded.spec, loaded.config_hash, priority)
    return replace(submission, warnings=warnings)


def load_campaigns(loaded: LoadedStudy) -> dict[str, LoadedCampaign]:
    """Check a study's campaigns as campaign files. StudyErrors with every mistake in them."""
    if not loaded.study.campaigns:
        return {}
    from creamtea.human.making.campaign_file import Folder, check_campaign  # few studies have campaigns

    study, data = loaded.study, loaded.expansion.data["campaigns"]
    known_names: dict[str, Collection[str]] = {"test_set": study.test_sets, "systems": study.systems}
    campaigns: dict[str, LoadedCampaign] = {}
    lines: list[str] = []
    for name, settings in data.items():
        content = {**copy.deepcopy(settings), "name": name, "study": study.name}
        part = loaded.document.part(("campaigns", name), content)
        part.mistakes += (
            Mistake((key,), "", "leave it out: it follows from the study")
            for key in ("name", "study", "texts")
            if key in settings
        )
        for key, known in known_names.items():
            entries = settings.get(key) if isinstance(settings.get(key), list) else [settings.get(key)]
            part.mistakes += (
                Mistake((key,), shown(entry), one_of(known, entry))
                for entry in entries
                if isinstance(entry, str) and entry not in known
            )
        try:
            campaigns[name] = check_campaign(part, Folder(loaded.path.parent))
        except StudyErrors as error:
            lines += error.lines
    if lines:
        raise StudyErrors(lines, loaded.document.name)
    return campaigns


def show_warnings(warnings: Sequence[StudyWarning]) -> None:
    """Print a line for each warning to stderr."""
    for warning in dict.fromkeys(warnings):
        say(f"warning: {warning.line()}", err=True, color=typer.colors.YELLOW)
