"""`creamtea campaign export` and `import`: ratings to and from other tools and databases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from creamtea.cli.printing import show
from creamtea.cli.workplace import (
    ACTOR,
    AsJson,
    CampaignName,
    artefact_store,
    existing_database,
    names,
    opened_database,
)
from creamtea.errors import InputError
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts, NotKept, import_options
from creamtea.human.protocols.taxonomy import Taxonomy, read_taxonomy
from creamtea.wording import counted

# the type of a fact -> the type of its option, if they differ
OPTION_TYPES: dict[Any, Any] = {
    Taxonomy | None: Path | None,
    tuple[str, ...]: str | None,
    Mapping[str, Path]: list[str] | None,
}

NewFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="A folder that is new or empty.")
]
ExportFormat = Annotated[
    str, typer.Option("--format", metavar="|".join(exchange.BUILT_IN), help="What to write.")
]


commands = typer.Typer()


@commands.command(
    epilog="Examples: `creamtea campaign export first --format csv -o first` · "
    "`creamtea campaign export esa-demo --format pearmut -o esa-pearmut`"
)
def export(
    name: CampaignName,
    output: NewFolder,
    kind: ExportFormat = "csv",
    as_json: AsJson = False,
) -> None:
    """Write a campaign's ratings into a folder. Raters go by their pseudonyms.

    csv and jsonl hold every revision, with all that a re-analysis needs; the others are formats of other
    tools, and the command says what they cannot hold. docs/exchange.md describes the files.
    """
    with existing_database() as database:
        done = exchange.export_campaign(database, name, kind, output, ACTOR, artefact_store())
    show(as_json, done, export_lines(f"campaign {name}", kind, output, done))


def export_lines(name: str, kind: str, folder: Path, done: exchange.Exported) -> list[str]:
    """Say what was written, and what was not. `name`: the campaign or the direction."""
    files = f"{counted(done.ratings, 'rating')}, {counted(len(done.files), 'file')} in {folder}"
    left_out = [f"left out: {part}" for part in done.left_out]
    return [f"{name}: {files}", *_table(f"not kept by {kind}", done.not_kept), *left_out]


def _table(title: str, not_kept: Sequence[NotKept]) -> list[str]:
    """List the numbers of parts that were not kept, below each other; empty if all were kept."""
    if not not_kept:
        return []
    return [f"{title}:", *(f"{part.number:>9}  {part.what}" for part in not_kept)]


def _with_facts(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command an option for each field of `ImportFacts`, as the field declares it.

    typer reads a command's options from its signature.
    """
    signature = inspect.signature(command, eval_str=True)
    *own, _ = signature.parameters.values()  # the last parameter takes the facts
    only_for = {
        field: f" Only for {kind}." for kind, found in exchange.BUILT_IN.items() for field in found.options
    }
    options = []
    for field, (declared, option) in import_options().items():
        about = option.help + only_for.get(field, "")
        described = typer.Option(metavar=option.value, help=about, min=option.lowest, max=option.highest)
        option_type = OPTION_TYPES.get(declared, declared)
        parameter = partial(inspect.Parameter, field, inspect.Parameter.KEYWORD_ONLY, default=None)
        options.append(parameter(annotation=Annotated[option_type, described]))

    @wraps(command)
    def call(**values: Any) -> None:
        command(**values)

    call.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return call


@commands.command(
    "import",
    epilog="Examples: `creamtea campaign import old --from first` · "
    "`creamtea campaign import wmt22 --from WMT22.csv --protocol da-sqm "
    "--source-language eng --target-language ces` · "
    "`creamtea campaign import deen --from ad-deen-good-stnd-redup.csv "
    "--rater-statistics ad-deen-trk-mean-sd.txt` · "
    "`creamtea campaign import ted --from mqm_ted_zhen.tsv` · "
    "`creamtea campaign import wmt23 --from wmt23 --scores mqm --dry-run` · "
    "`creamtea campaign import fox --from fox.jsonl --campaign-file fox.json`",
)
@_with_facts
def import_(
    name: CampaignName,
    origin: Annotated[
        Path, typer.Option("--from", metavar="PATH", help="An export's folder, or a file of ratings.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(exchange.BUILT_IN),
            help="The format of the file; by default it is recognised.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be stored and what not, and store nothing.")
    ] = False,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Import a campaign: an export, a file of ratings, or files of Appraise, MQM, mt-metrics-eval or Pearmut.

    Everything is stored or nothing, and whatever cannot be kept is counted and named. The campaign is closed
    and belongs to no study. docs/exchange.md says which columns a file of ratings needs.
    """
    if not origin.exists():
        raise InputError(f"--from {origin}: no such file or folder")
    left_out, taxonomy = given["leave_out"], given["taxonomy"]
    given["leave_out"] = () if left_out is None else tuple(names("--leave-out", left_out))
    given["taxonomy"] = None if taxonomy is None else read_taxonomy(taxonomy)
    given["output_of"] = _files(given["output_of"] or [])
    facts = ImportFacts(name, **given)
    kind = kind or exchange.recognise(origin)
    with opened_database() as database:
        done = exchange.import_campaign(database, origin, kind, facts, ACTOR, dry_run, artefact_store())
    stored = (
        f"campaign {done.campaign}: {counted(done.ratings, 'rating')} of {counted(done.systems, 'system')}, "
        f"{counted(done.items, 'item')}, {counted(done.raters, 'rater')}, read as {kind}"
    )
    nothing = ["--dry-run: nothing is stored"] if dry_run else []
    tables = (*_table("not kept", done.not_kept), *_table("note", done.notices))
    show(as_json, done, (stored, *tables, *nothing))


def _files(options: list[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for written in options:
        system, equals, path = written.partition("=")
        if not (system and equals and path):
            raise InputError(f"--output-of {written}: give SYSTEM=FILE")
        if system in files:
            raise InputError(f"--output-of {system}: given twice")
        files[system] = Path(path)
    return files
