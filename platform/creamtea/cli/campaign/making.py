"""`creamtea campaign init`, `validate`, `schema` and `create`: from a campaign file to a draft."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from creamtea.cli.campaign.shared import Force, names, show, write_new
from creamtea.cli.printing import say
from creamtea.cli.workplace import (
    AsJson,
    artefact_store,
    existing_database,
    load_campaigns,
    mistakes_as_json,
    opened_database,
)
from creamtea.document.document import YamlDocument, read_document
from creamtea.document.mistakes import Place
from creamtea.errors import InputError
from creamtea.human.making import campaigns
from creamtea.human.making.campaign_file import (
    KEYS,
    Folder,
    LoadedCampaign,
    check_campaign,
    commented,
    create_campaigns,
    load_campaign,
)
from creamtea.human.making.campaigns import CampaignRequest, CampaignSummary
from creamtea.human.making.outputs import check_names
from creamtea.human.making.programme import OUTPUTS, directions_in, new_texts
from creamtea.human.making.settings import USUAL_PROTOCOL, CampaignDocument
from creamtea.human.protocols import find_protocol
from creamtea.store.queries import find_study
from creamtea.store.tables import ItemKind
from creamtea.wording import counted

USUAL_SYSTEMS = 4  # of a study, unless `init` is told which
INIT = (
    "Examples: `creamtea campaign init demo --test-set test -o first.yaml` · "
    "`creamtea campaign init wmt -o tea.yaml`"
)
VALIDATE = "Example: `creamtea campaign validate first.yaml --set sample.items=50`"
SCHEMA = """Example: `creamtea campaign schema > campaign.schema.json`, and begin the campaign file with:

`# yaml-language-server: $schema=campaign.schema.json`
"""
CREATE = (
    "Examples: `creamtea campaign create first.yaml` · `creamtea campaign create studies/demo.yaml` · "
    "`creamtea campaign create second --study demo --test-set test "
    "--systems softmax-greedy,softmax-beam4,scones-greedy,entmax-greedy --items 100 --ratings 2` · "
    "`creamtea campaign create odd --study demo --test-set test --systems softmax-greedy,softmax-lexicon "
    "--set sample.kind=disagreement --set 'sample.metrics=[bleu,chrf]' --items 100`"
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a key of the campaign (sample.items=50). Repeatable."
    ),
]


commands = typer.Typer()


@commands.command(epilog=INIT)
def init(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|DIR",
            help="The study whose outputs are rated, or a folder with system-outputs/PAIR/SYSTEM.txt.",
        ),
    ],
    test_set: Annotated[str | None, typer.Option(help="One of its test sets; by default the first.")] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Two to 60 of its systems; by default a study's first four, or all of a folder.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The campaign file to write.")
    ] = Path("campaign.yaml"),
    force: Force = False,
) -> None:
    """Write a campaign file, with a comment on every key, for a study or one direction of a folder."""
    values: dict[str, Any] = {"name": output.stem, "sample.items": 100, "raters.ratings_per_item": 1}
    if (Path(study) / OUTPUTS).is_dir():
        pair, *others = directions_in(Path(study))
        if others:
            remedy = f"`creamtea programme init {quote(study)}` writes one file for all directions"
            say(f"note: {output} is for {pair} only, not for {', '.join(others)}: {remedy}")
        values |= new_texts(Path(study), output, [pair]) | {"texts.languages": pair}
        values |= {"test_set": test_set} if test_set else {}
        values |= {"systems": names("--systems", systems)} if systems else {}
    else:
        with existing_database() as database, database.session() as session:
            row = find_study(session, study)
            rated = test_set or next(iter(row.spec["test_sets"]))
            chosen = names("--systems", systems) if systems else list(row.spec["systems"])[:USUAL_SYSTEMS]
            check_names(session, row, rated, chosen)
        values |= {"study": study, "test_set": rated, "systems": chosen, "protocol.kind": USUAL_PROTOCOL}
        values |= {"controls.bad_references": 0.1, "controls.repeats": 0.1}
    write_new(output, commented(values), force)
    say(f"{output} is written. Next: creamtea campaign create {quote(str(output))}")


@commands.command(epilog=VALIDATE)
def validate(file: File, override: Overrides = None, json_output: AsJson = False) -> None:
    """Check a campaign file and the files that it names, and list every mistake.

    `create` also checks it against the study's outputs. Exit code 2: there are mistakes.
    """
    with mistakes_as_json(json_output):
        if _is_study(file):
            remedy = f"`creamtea validate {quote(str(file))}` checks it with its campaigns"
            raise InputError(f"{file} is a study: {remedy}")
        loaded = load_campaign(file, override or [])
        systems = loaded.check()
    document: dict[str, Any] = loaded.campaign.model_dump(mode="json", by_alias=True)
    asked = loaded.campaign
    lines = [
        f"{file} is valid: {asked.protocol.kind} of "
        + counted(len(systems), "system")
        + (f" of study {asked.study}" if asked.study else "")
    ]
    show(json_output, {"valid": True, "campaign": document}, lines)


@commands.command(epilog=SCHEMA)
def schema() -> None:
    """Print the JSON Schema of a campaign file, so that editors complete keys and mark mistakes."""
    from creamtea.study.spec import schema_of

    say(json.dumps(schema_of(CampaignDocument, "creamtea campaign"), ensure_ascii=False, indent=1))


@commands.command(epilog=CREATE)
def create(
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A campaign file (.yaml), a study with `campaigns:`, or a new campaign's name.",
        ),
    ],
    study: Annotated[str | None, typer.Option(help="The study whose outputs are rated.")] = None,
    test_set: Annotated[str | None, typer.Option(help="One of its test sets.")] = None,
    systems: Annotated[str | None, typer.Option(metavar="A,B,…", help="Two to 60 of its systems.")] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="What raters see and answer: protocol.kind.")
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(metavar="N", help="At most N segments or documents: sample.items."),
    ] = None,
    ratings: Annotated[
        int | None, typer.Option(metavar="K", help="Raters for each item: raters.ratings_per_item.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed for items, controls, and orders on pages.")] = None,
    override: Overrides = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a draft of this name.")] = False,
    json_output: AsJson = False,
) -> None:
    """Create a campaign as a draft: choose what people rate, blind and shuffled.

    A campaign file sets every key; the options override some of them, and `--set` overrides any. From a
    study's file, all campaigns under `campaigns:` are created, or none. In contrastive direct assessment
    (contrastive-da), raters score 2 to 8 outputs at once, from 1 to 6 in steps of 0.2. In da and da-sqm they
    score one output from 0 to 100, in preference they choose the better of two or neither, in post-edit they
    correct an output, and in esa, cesa and mqm they mark errors. See `preview` for hours and power, then
    `launch`.
    """
    from creamtea.human.making.preview import preview  # scipy.stats takes a second

    short = {
        "study": study,
        "test_set": test_set,
        "systems": names("--systems", systems) if systems is not None else None,
        "protocol.kind": protocol,
        "sample.items": items,
        "raters.ratings_per_item": ratings,
        "seed": seed,
    }
    given = [f"{key}={json.dumps(value)}" for key, value in short.items() if value is not None]
    asked = _load(campaign, given, override or [])
    made: list[CampaignSummary] = []
    lines: list[str] = []
    # a campaign of text files may be the first entry of a new database
    opened = existing_database if all(loaded.campaign.study for loaded in asked) else opened_database
    with opened() as database:
        requests = create_campaigns(database, asked, artefact_store(), replace=replace)
        for name, request in requests.items():
            draft = campaigns.summary(database, name)
            made.append(draft)
            lines += _about(draft, request, preview(database, name).doubt)
    show(json_output, made if len(made) > 1 else made[0], lines)


def _about(draft: CampaignSummary, request: CampaignRequest, doubt: str | None) -> list[str]:
    every_system = (
        find_protocol(request.protocol).max_outputs >= len(draft.systems)
        and request.settings.block_size(len(draft.systems)) is None
    )
    shown = "×" if every_system else "of"  # an item shows every system, or some
    kinds = ", ".join(ItemKind(kind).counted(count) for kind, count in draft.kinds.items())
    items = f"{counted(draft.items, 'item')} {shown} {len(draft.systems)} systems ({kinds})"
    pages = f" on {counted(draft.pages, 'page')}" if draft.pages != draft.items else ""
    name = quote(draft.name)
    return [
        f"campaign {draft.name}: {items}{pages}, a draft",
        *(f"note: {notice}" for notice in (request.texts.notices if request.texts else ())),
        *([doubt] if doubt else []),
        f"next: creamtea campaign preview {name}, then creamtea campaign launch {name}",
    ]


def _load(campaign: str, short: list[str], overrides: list[str]) -> list[LoadedCampaign]:
    """Load one campaign from its file or from options alone, or all campaigns of a study's file."""
    path = Path(campaign)
    if path.suffix not in (".yaml", ".yml", ".json"):
        document = YamlDocument("the options", {"name": campaign}, {(): Place(0, "the options")})
        return [check_campaign(document, Folder(Path()), [*short, *overrides])]
    if not _is_study(path):
        return [load_campaign(path, [*short, *overrides])]
    if short:
        raise InputError(
            f"{campaign} is a study: the options set keys of a single campaign; use "
            "--set campaigns.NAME.sample.items=50"
        )
    from creamtea.study.loader import load_study

    if not (loaded := load_campaigns(load_study(path, overrides))):
        raise InputError(
            f"{campaign} is a study without campaigns: write them under `campaigns:`, or write a campaign "
            f"file with `creamtea campaign init`"
        )
    return list(loaded.values())


def _is_study(path: Path) -> bool:
    return isinstance(read_document(path, KEYS, kind="a campaign (.yaml)").data.get("systems"), dict)
