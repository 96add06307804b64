"""`creamtea campaign export` and `import`: ratings to and from other tools and databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from creamtea.cli.campaign.shared import ACTOR, Name, names, show, with_options
from creamtea.cli.workplace import AsJson, artefact_store, existing_database, opened_database
from creamtea.errors import InputError
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.wording import counted


def register(commands: typer.Typer) -> None:
    commands.command(
        "export",
        epilog="Examples: `creamtea campaign export first --format csv -o first` · "
        "`creamtea campaign export esa-demo --format pearmut -o esa-pearmut`",
    )(export)
    commands.command(
        "import",
        epilog="Examples: `creamtea campaign import old --from first` · "
        "`creamtea campaign import wmt22 --from WMT22.csv --protocol da-sqm "
        "--source-language eng --target-language ces` · "
        "`creamtea campaign import deen --from ad-deen-good-stnd-redup.csv "
        "--rater-statistics ad-deen-trk-mean-sd.txt` · "
        "`creamtea campaign import ted --from mqm_ted_zhen.tsv` · "
        "`creamtea campaign import wmt23 --from wmt23 --scores mqm --dry-run` · "
        "`creamtea campaign import fox --from fox.jsonl --campaign-file fox.json`",
    )(import_)


def export(
    name: Name,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A folder that is new or empty.")
    ],
    kind: Annotated[
        str, typer.Option("--format", metavar="|".join(exchange.BUILT_IN), help="What to write.")
    ] = "csv",
    as_json: AsJson = False,
) -> None:
    """Write a campaign's ratings into a folder. Raters go by their pseudonyms.

    csv and jsonl hold every revision, with all that a re-analysis needs; the others are formats of other
    tools, and the command says what of the campaign they cannot hold. docs/exchange.md describes the files.
    """
    with existing_database() as database:
        done = exchange.export_campaign(database, name, kind, output, ACTOR, artefact_store())
    written = (
        f"campaign {name}: {counted(done.ratings, 'rating')}, {counted(len(done.files), 'file')} in {output}"
    )
    left_out = [f"left out: {part}" for part in done.left_out]
    show(as_json, done, (written, *_table(f"not kept by {kind}", done.not_kept), *left_out))


def _table(title: str, not_kept: Sequence[NotKept]) -> list[str]:
    """A line each, the counts below each other; nothing without any."""
    if not not_kept:
        return []
    return [f"{title}:", *(f"{part.number:>9}  {part.what}" for part in not_kept)]


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """The options of `import`, as they are written."""

    origin: Annotated[
        Path, typer.Option("--from", metavar="PATH", help="An export's folder, or a file of ratings.")
    ]
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(exchange.BUILT_IN),
            help="The format of the file; recognised if omitted.",
        ),
    ] = None
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The protocol, where the file does not say it.")
    ] = None
    test_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the test set; the campaign's if omitted.")
    ] = None
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The source language, where the file does not say it.")
    ] = None
    target_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The target language, where the file does not say it.")
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(metavar="SYSTEM", help="The system that others are compared with; else the first."),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS", min=0.0, help="The smallest difference that matters; else the protocol's."
        ),
    ] = None
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="mt-metrics-eval: which scores of people, where there are several."
        ),
    ] = None
    campaign_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="pearmut: the campaign's JSON, which says the protocol."),
    ] = None
    taxonomy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For ratings with marked errors: the taxonomy that weights them."),
    ] = None
    rater_statistics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="appraise: raters' means and deviations, where scores are z."),
    ] = None
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
    segment_scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="appraise: SYSTEM SCORE per segment, as published; tells which lines of --documents the "
            "campaign has.",
        ),
    ] = None
    first_segment: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="appraise: the number of a first segment; 0 where the file has a 0."),
    ] = None
    leave_out: Annotated[
        str | None,
        typer.Option(metavar="SYSTEM[,…]", help="Systems to leave out, with their ratings and pairs."),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be stored and what not, and store nothing.")
    ] = False
    as_json: AsJson = False


@with_options(ImportOptions)
def import_(name: str, options: ImportOptions) -> None:
    """Read a campaign: an export, a file of ratings made elsewhere, or files of Appraise, Google's MQM,
    mt-metrics-eval and Pearmut.

    All of it is stored or nothing, and what cannot be kept is counted and named. The campaign is closed and
    belongs to no study. docs/exchange.md says which columns a file of ratings needs.
    """
    if not options.origin.exists():
        raise InputError(f"--from {options.origin}: nothing is there")
    facts = ImportFacts(
        name,
        options.protocol,
        options.test_set,
        options.source_language,
        options.target_language,
        baseline=options.baseline,
        delta=options.delta,
        leave_out=tuple(names("--leave-out", options.leave_out)) if options.leave_out is not None else (),
        scores=options.scores,
        campaign_file=options.campaign_file,
        taxonomy=None if options.taxonomy is None else read_taxonomy(options.taxonomy),
        statistics=options.rater_statistics,
        sources=options.sources,
        outputs=_files(options.output_of or []),
        documents=options.documents,
        segment_scores=options.segment_scores,
        first_segment=options.first_segment,
    )
    kind = options.kind or exchange.recognise(options.origin)
    with opened_database() as database:
        done = exchange.import_campaign(
            database, options.origin, kind, facts, ACTOR, options.dry_run, artefact_store()
        )
    stored = (
        f"campaign {done.campaign}: {counted(done.ratings, 'rating')} of {counted(done.systems, 'system')}, "
        f"{counted(done.items, 'item')}, {counted(done.raters, 'rater')}, read as {kind}"
    )
    nothing = ["--dry-run: nothing is stored"] if options.dry_run else []
    tables = (*_table("not kept", done.not_kept), *_table("note", done.notices))
    show(options.as_json, done, (stored, *tables, *nothing))


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
