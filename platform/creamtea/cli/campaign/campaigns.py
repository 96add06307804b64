"""`creamtea campaign init`, `validate`, …, `report`, `disputes`: a campaign from its file to its results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, get_args

import typer

from creamtea.access import audit
from creamtea.cli.campaign.raters import rater_lines, rater_values
from creamtea.cli.printing import say, show
from creamtea.cli.report import ExportFolder, Formats, HtmlFile, Markdown, Printing
from creamtea.cli.workplace import (
    ACTOR,
    AsJson,
    CampaignName,
    Force,
    Reason,
    Yes,
    artefact_store,
    existing_database,
    load_campaigns,
    mistakes_as_json,
    names,
    opened_database,
    write_new,
)
from creamtea.document.document import YamlDocument, read_document
from creamtea.document.mistakes import Place, one_of
from creamtea.errors import InputError
from creamtea.human.making import campaigns, launching
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
from creamtea.human.making.programme import OUTPUTS, directions_in, new_texts
from creamtea.human.making.settings import USUAL_PROTOCOL, CampaignDocument, WmtRuleName
from creamtea.human.making.texts import check_names
from creamtea.human.protocols import find_protocol
from creamtea.human.rating import raters
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.tables import ItemKind
from creamtea.study.loader import load_study
from creamtea.study.spec import schema_of
from creamtea.wording import counted

USUAL_SYSTEMS = 4  # how many of a study's systems `init` takes by default
INIT_EXAMPLES = (
    "Examples: `creamtea campaign init demo --test-set test -o first.yaml` · "
    "`creamtea campaign init wmt -o tea.yaml`"
)
VALIDATE_EXAMPLES = "Example: `creamtea campaign validate first.yaml --set sample.items=50`"
SCHEMA_EXAMPLES = """Example: `creamtea campaign schema > campaign.schema.json`, and as the file's first line:

`# yaml-language-server: $schema=campaign.schema.json`
"""
CREATE_EXAMPLES = (
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
RULE_NAMES = get_args(WmtRuleName)
# fields of a rater in `status --json`; only `raters list` has identities and answers to questions
PROGRESS = (
    *("id", "pseudonym", "created_at", "consented_at", "excluded_at", "forgotten_at"),
    *("submitted", "skipped", "tutorial", "attention", "last_submit", "finished"),
)

commands = typer.Typer()


@commands.command(epilog=INIT_EXAMPLES)
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


@commands.command(epilog=VALIDATE_EXAMPLES)
def validate(file: File, override: Overrides = None, as_json: AsJson = False) -> None:
    """Check a campaign file and the files that it names, and list every mistake.

    `create` also checks it against the study's outputs. Exit code 2: there are mistakes.
    """
    with mistakes_as_json(as_json):
        if _is_study(file):
            remedy = f"`creamtea validate {quote(str(file))}` checks it with its campaigns"
            raise InputError(f"{file} is a study: {remedy}")
        loaded = load_campaign(file, override or [])
        systems = loaded.check()
    campaign = loaded.campaign
    of_study = f" of study {campaign.study}" if campaign.study else ""
    line = f"{file} is valid: {campaign.protocol.kind} of {counted(len(systems), 'system')}{of_study}"
    show(as_json, {"valid": True, "campaign": campaign.model_dump(mode="json", by_alias=True)}, [line])


@commands.command(epilog=SCHEMA_EXAMPLES)
def schema() -> None:
    """Print the JSON Schema of a campaign file, so that editors complete keys and mark mistakes."""

    say(json.dumps(schema_of(CampaignDocument, "creamtea campaign"), ensure_ascii=False, indent=1))


@commands.command(epilog=CREATE_EXAMPLES)
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
    as_json: AsJson = False,
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
    set_by_options = [f"{key}={json.dumps(value)}" for key, value in short.items() if value is not None]
    loaded = _load(campaign, set_by_options, override or [])
    made: list[CampaignSummary] = []
    lines: list[str] = []
    # a campaign of text files may be the first entry of a new database
    opened = existing_database if all(each.campaign.study for each in loaded) else opened_database
    with opened() as database:
        requests = create_campaigns(database, loaded, artefact_store(), replace=replace)
        for name, request in requests.items():
            draft = campaigns.summary(database, name)
            made.append(draft)
            lines += _about(draft, request, preview(database, name).doubt)
    show(as_json, made if len(made) > 1 else made[0], lines)


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


def _load(campaign: str, set_by_options: list[str], overrides: list[str]) -> list[LoadedCampaign]:
    """Load one campaign from its file or from options alone, or all campaigns of a study's file."""
    path = Path(campaign)
    if path.suffix not in (".yaml", ".yml", ".json"):
        document = YamlDocument("the options", {"name": campaign}, {(): Place(0, "the options")})
        return [check_campaign(document, Folder(Path()), [*set_by_options, *overrides])]
    if not _is_study(path):
        return [load_campaign(path, [*set_by_options, *overrides])]
    if set_by_options:
        raise InputError(
            f"{campaign} is a study: the options set keys of a single campaign; use "
            "--set campaigns.NAME.sample.items=50"
        )

    if not (loaded := load_campaigns(load_study(path, overrides))):
        raise InputError(
            f"{campaign} is a study without campaigns: write them under `campaigns:`, or write a campaign "
            f"file with `creamtea campaign init`"
        )
    return list(loaded.values())


def _is_study(path: Path) -> bool:
    # a study has systems by name, a campaign a list of names
    return isinstance(read_document(path, KEYS, kind="a campaign (.yaml)").data.get("systems"), dict)


# ---------------------------------------------------------------- from a draft to results


@commands.command(epilog="Example: `creamtea campaign preview first`")
def preview(name: CampaignName, as_json: AsJson = False) -> None:
    """Show a campaign's cost and statistical power: items, rater hours, detectable differences."""
    from creamtea.human.making.preview import preview as make_preview  # scipy.stats takes a second

    with existing_database() as database:
        plan = make_preview(database, name)
    lines = [f"campaign {plan.campaign} ({plan.protocol}, {plan.state})", *filter(None, [plan.doubt])]
    show(as_json, plan, [*lines, *(f"{about:<12}{text}" for about, text in plan.facts())])


@commands.command(epilog="Example: `creamtea campaign launch first`")
def launch(name: CampaignName, as_json: AsJson = False) -> None:
    """Open a draft to its raters. Items, settings and the planned analysis are registered and frozen."""
    with existing_database() as database:
        registered = launching.launch(database, name, ACTOR)
    lines = (
        f"campaign {name} is launched; registered as {registered['digest'][:16]}",
        f"next: creamtea campaign link {quote(name)} --rater PSEUDONYM",
    )
    show(as_json, registered, lines)


@commands.command(epilog="Example: `creamtea campaign status first --json`")
def status(name: CampaignName, as_json: AsJson = False) -> None:
    """Show a campaign's progress by item kind and rater, and whether it changed since its registration."""
    with existing_database() as database:
        summary = campaigns.summary(database, name)
        with database.session() as session:
            row = find_campaign(session, name)
            kinds = campaigns.progress_by_kind(session, row)
            changed = launching.changes(session, row)
            registered = row.registered
        people = raters.overview(database, summary.id)
    values = dataclasses.asdict(summary) | {
        "kinds": kinds,
        "raters": [{field: getattr(person, field) for field in PROGRESS} for person in people],
        "registered": registered,
        "changed": changed,
    }
    lines = [f"campaign {name}: {summary.state}, {_origin(summary)}"]
    if summary.pages != summary.items:
        lines.append(f"{counted(summary.items, 'item')} on {counted(summary.pages, 'page')}")
    if registered is not None:
        state = f"CHANGED since: {', '.join(changed)}" if changed else "unchanged since"
        lines.append(f"registered at its launch as {registered['digest'][:16]}, {state}")
    lines += [
        f"  {ItemKind(kind.kind).label:<15} {counted(kind.items, 'item')}, "
        + (
            counted(kind.submitted, "rating")  # every rater answers them: no total is planned
            if ItemKind(kind.kind).is_written
            else f"{kind.submitted:,} of {counted(kind.wanted, 'rating')}, {kind.complete:,} complete"
            + (f", {kind.passed_over:,} passed over" if kind.passed_over else "")
        )
        for kind in kinds
    ]
    lines += [f"  {line}" for line in rater_lines(name, people)]
    show(as_json, values, lines)


def _origin(campaign: CampaignSummary) -> str:
    origin = f"study {campaign.study}" if campaign.study else "no study"
    return f"{campaign.protocol}, {origin}, {campaign.test_set}"


@commands.command(epilog="Example: `creamtea campaign close first --reason 'enough items'`")
def close(
    name: CampaignName,
    reason: Reason = "",
) -> None:
    """End the rating. What raters saved stays; `creamtea campaign reopen` lets them continue."""
    with existing_database() as database:
        launching.close(database, name, ACTOR, reason)
    say(f"campaign {name} is closed")


@commands.command(epilog="Example: `creamtea campaign reopen first --reason 'a rater came late'`")
def reopen(name: CampaignName, reason: Reason) -> None:
    """Let raters continue in a closed campaign. Its log keeps the reason, and its report says so."""
    with existing_database() as database:
        launching.reopen(database, name, ACTOR, reason)
    say(f"campaign {name} is open again")


@commands.command("list", epilog="Example: `creamtea campaign list`")
def list_campaigns(as_json: AsJson = False) -> None:
    """List the campaigns and their progress."""
    with existing_database() as database:
        listed = campaigns.summaries(database)
    lines = [
        f"{campaign.name}: {campaign.state}, {_origin(campaign)}, "
        f"{counted(len(campaign.systems), 'system')}, {campaign.ratings} of {campaign.wanted} item ratings, "
        f"{counted(campaign.raters, 'rater')}"
        for campaign in listed
    ]
    show(as_json, listed, lines or ["no campaigns yet; see creamtea campaign create --help"])


@commands.command(epilog="Example: `creamtea campaign log first`")
def log(name: CampaignName, as_json: AsJson = False) -> None:
    """Show who decided what in a campaign, when and why."""
    with existing_database() as database:
        entries = audit.read(database, campaigns.summary(database, name).id)
    lines = [
        f"{entry.at:%Y-%m-%d %H:%M:%S} UTC  {entry.actor}  {entry.action}"
        + (f" {whom}" if (whom := entry.rater or entry.detail.get("role")) else "")
        + (f": {entry.reason}" if entry.reason else "")
        for entry in entries
    ]
    show(as_json, entries, lines)


@commands.command("rm", epilog="Example: `creamtea campaign rm first`")
def remove(
    name: CampaignName,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a draft or a closed campaign for good, with its ratings, raters and log.

    To keep the ratings, run `creamtea campaign export` first. A launched campaign must be closed first.
    `creamtea gc` frees the space of media files.
    """
    from creamtea.upkeep import remove_campaigns, what_it_holds

    with existing_database() as database:
        if not yes:
            with database.session() as session:
                contents = what_it_holds(session, find_campaign(session, name))
            holds = f"{counted(contents.items, 'item')}, {counted(contents.raters, 'rater')}"
            holds += f" and {counted(contents.answers, 'item rating')}"
            typer.confirm(f"remove campaign {name} with {holds} for good?", abort=True, err=True)
        (removed,) = remove_campaigns(database, [name])
    gone = f"{counted(removed.items, 'item')}, {counted(removed.answers, 'item rating')}"
    show(as_json, {"campaign": name, **dataclasses.asdict(removed)}, [f"removed campaign {name}: {gone}"])


@commands.command(
    epilog="Examples: `creamtea campaign report first` · `creamtea campaign report first --full` · "
    "`creamtea campaign report first --html first.html` · "
    "`creamtea campaign report first --export paper --format latex`"
)
def report(
    name: CampaignName,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    wmt: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help=f"WMT's rules for ranks: {', '.join(RULE_NAMES)}; by default the campaign's."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print every table and text, as --markdown and --html always do."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what raters say: means with intervals and verdicts.

    With `--full` also agreement, ranks, metrics against human scores, and outputs that raters disagree on. It
    also works for imported ratings, which have no study. `creamtea report STUDY` shows the same beside the
    study's metrics. `--json` adds the raters' reports (`creamtea campaign raters report`).
    """
    from creamtea.report.human.build import build_human  # its statistics take a second to import

    if wmt is not None and wmt not in RULE_NAMES:
        raise InputError(f"--wmt {wmt}: unknown rules; give {one_of(RULE_NAMES, wmt)}")
    printing = Printing(markdown, as_json, html, export, formats, full)
    with existing_database() as database:
        built = build_human(database, name, wmt)
        printing.show(built, values=lambda: {"raters": rater_values(database, built.number)})


@commands.command(
    epilog="Examples: `creamtea campaign disputes first` · "
    "`creamtea campaign disputes first --apart 2 --ask --reason 'before the paper'`"
)
def disputes(
    name: CampaignName,
    apart: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            min=0,
            help="Ratings of one output at least this far apart; by default the campaign's bound.",
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for a third rating of each listed output.")] = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """List the outputs whose ratings lie far apart, and with --ask give them to one more rater.

    Third ratings are kept apart: reports show them beside the others, and no mean or test includes them.
    The bound is `raters.disputed_from`, or else half of the scale (12.5 points in MQM).
    """
    from creamtea.human.results.disputes import ask_for_third_ratings, list_disputes

    with existing_database() as database:
        asked = ask_for_third_ratings(database, name, ACTOR, apart, reason) if ask else 0
        disputed = list_disputes(database, name, apart)
    lines = []
    for output in disputed.listed:
        third = f"; third rating: {output.third_in_words}" if output.asked else ""
        lines.append(f"{output.segment}, {output.system}: {output.in_words}{third}")
    lines.append(
        f"{len(disputed.listed):,} of {counted(disputed.outputs, disputed.judged)} with two raters or more "
        f"have ratings {counted(disputed.bound, 'point')} apart or more"
    )
    if asked:
        lines.append(
            f"{counted(asked, 'page')} given to one more rater; see creamtea campaign status {quote(name)}"
        )
    show(as_json, disputed, lines)
