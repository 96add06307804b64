"""`creamtea campaign export` and `import`: ratings to and from other tools and databases."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from creamtea.cli.campaign.shared import ACTOR, Name, with_options
from creamtea.cli.workplace import AsJson, opened_database
from creamtea.errors import InputError
from creamtea.human.exchange import exporting
from creamtea.human.exchange.appraise_campaign import AppraiseOptions
from creamtea.human.exchange.plain import RatingsFacts
from creamtea.human.exchange.storing import Imported
from creamtea.store.database import Database

UNKNOWN_LANGUAGE = "und"  # BCP 47: undetermined


def register(commands: typer.Typer) -> None:
    commands.command("export", epilog="Example: `creamtea campaign export first --format csv -o first`")(
        export
    )
    commands.command(
        "import",
        epilog="Examples: `creamtea campaign import old --from first --format csv` · "
        "`creamtea campaign import wmt22 --from WMT22.csv --format appraise --protocol da-sqm "
        "--source-language eng --target-language ces`",
    )(import_)


def export(
    name: Name,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A folder that is new or empty.")
    ],
    kind: Annotated[
        str, typer.Option("--format", metavar="|".join(exporting.EXPORTS), help="What to write.")
    ] = "csv",
    as_json: AsJson = False,
) -> None:
    """Write a campaign's ratings into a folder. Raters go by their pseudonyms.

    csv and jsonl hold every revision, with all that a re-analysis needs; mt-metrics-eval is the layout of
    Google's toolkit for metrics. docs/exchange.md describes the files.
    """
    with opened_database() as database:
        done = exporting.export_campaign(database, name, kind, output, ACTOR)
    if as_json:
        files = [str(path) for path in done.files]
        typer.echo(json.dumps({"files": files, "ratings": done.ratings, "left_out": done.left_out}))
        return
    typer.echo(f"campaign {name}: {done.ratings} ratings, {len(done.files)} files in {output}")
    for left_out in done.left_out:
        typer.echo(f"left out: {left_out}")


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """The options of `import`, as they are written."""

    origin: Annotated[
        Path, typer.Option("--from", metavar="PATH", help="An export's folder, or a file of ratings.")
    ]
    kind: Annotated[
        str, typer.Option("--format", metavar="|".join(exporting.IMPORTS), help="What is to be read.")
    ] = "csv"
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The protocol, where the file does not say it.")
    ] = None
    test_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the test set is called; the campaign's name.")
    ] = None
    source_language: Annotated[str | None, typer.Option(metavar="CODE", help="Of a file of ratings.")] = None
    target_language: Annotated[str | None, typer.Option(metavar="CODE", help="Of a file of ratings.")] = None
    sources: Annotated[
        Path | None, typer.Option(metavar="FILE", help="appraise: the source texts, a line per segment.")
    ] = None
    output_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM=FILE", help="appraise: a system's texts, a line per segment. Repeatable."
        ),
    ] = None
    documents: Annotated[
        Path | None, typer.Option(metavar="FILE", help="appraise: DOMAIN TAB DOCUMENT, a line per segment.")
    ] = None
    first_segment: Annotated[
        int, typer.Option(min=0, max=1, help="appraise: the number of a first segment.")
    ] = 1
    as_json: AsJson = False

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target; None where neither is given, InputError for one alone."""
        if self.source_language is None and self.target_language is None:
            return None
        if self.source_language is None or self.target_language is None:
            raise InputError("--source-language and --target-language go together: give both or neither")
        return self.source_language, self.target_language


@with_options(ImportOptions)
def import_(name: str, options: ImportOptions) -> None:
    """Read a campaign: an export, a file of ratings made elsewhere, or scores exported by Appraise.

    All of it is stored or nothing. The campaign is closed and belongs to no study. docs/exchange.md says
    which columns a file of ratings needs.
    """
    if options.kind not in exporting.IMPORTS:
        raise InputError(f"--format {options.kind}: it is one of {', '.join(exporting.IMPORTS)}")
    if not options.origin.exists():
        raise InputError(f"--from {options.origin}: nothing is there")
    languages = options.languages
    of_appraise = [options.sources, options.output_of, options.documents]
    if options.kind != exporting.APPRAISE and any(option is not None for option in of_appraise):
        raise InputError("--sources, --output-of and --documents go with --format appraise")
    with opened_database() as database:
        if options.kind == exporting.APPRAISE:
            done = exporting.import_appraise(database, _appraise(name, options), options.origin, ACTOR)
        elif options.origin.is_dir():
            done = _folder(database, name, options)
        else:
            source, target = languages or (UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE)
            facts = RatingsFacts(name, options.protocol, options.test_set or name, source, target)
            done = exporting.import_ratings(database, facts, options.origin, options.kind, ACTOR)
    _show(done, options.as_json)


def _appraise(name: str, options: ImportOptions) -> AppraiseOptions:
    return AppraiseOptions(
        name=name,
        protocol=options.protocol or "da",
        test_set=options.test_set or name,
        pair=options.languages,
        sources=options.sources,
        outputs=_files(options.output_of or []),
        documents=options.documents,
        first_segment=options.first_segment,
    )


def _folder(database: Database, name: str, options: ImportOptions) -> Imported:
    if options.protocol or options.test_set or options.languages:
        raise InputError(
            "--protocol, --test-set and the languages stand in the folder's campaign.json: leave them out"
        )
    return exporting.import_export(database, name, options.origin, options.kind, ACTOR)


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


def _show(done: Imported, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(done), ensure_ascii=False))
        return
    typer.echo(
        f"campaign {done.campaign}: {done.ratings} ratings of {done.systems} systems, {done.items} items, "
        f"{done.raters} raters"
    )
    for left_out in done.left_out:
        typer.echo(f"left out: {left_out}")
