"""`creamtea bundle` and `creamtea verify`: pack a study into one file, and recompute its numbers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say, say_instead
from creamtea.errors import InputError
from creamtea.printable import printable
from creamtea.wording import counted

if TYPE_CHECKING:
    from creamtea.bundle.verifying import Verification

BUNDLE_EXAMPLES = "Examples: `creamtea bundle demo` · `creamtea bundle 1 --out study.zip`"
VERIFY_EXAMPLES = "Examples: `creamtea verify demo.bundle.zip` · `creamtea verify demo.bundle.zip --json`"
MAX_PRINTED = 50  # differences


def bundle(
    name: workplace.StudyOrNumber,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The archive; by default NAME.bundle.zip. It is not overwritten."),
    ] = None,
    with_checks: Annotated[
        bool,
        typer.Option(
            "--with-checks",
            help="Also pack an open campaign, whose raters could read their checks in the file.",
        ),
    ] = False,
) -> None:
    """Pack a study into one file, from which anybody can compute its numbers again.

    The file has the study's spec, outputs, references, metric values, ratings, registered plans and report.
    It has no models and no secrets; raters appear by pseudonym. The same study gives the same bytes.
    `creamtea verify` recomputes the numbers anywhere, without a database.

    The file also has the answers of practice items and attention checks, and says which items are repeats and
    bad references. So a study with an open campaign that has such items is not packed without --with-checks.

    Exit code 0: written; 2: no such study, or it has not ended, or its outputs are gone, or checks are open.
    """
    from creamtea.bundle.archive import write_archive
    from creamtea.bundle.packing import pack

    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        files = pack(database, store, workplace.study_asked_for(database, name), with_checks)
    path = out or Path(f"{json.loads(files['manifest.json'])['study']['name']}.bundle.zip")
    if path.exists():
        raise InputError(f"{path}: already exists; name another file with --out")
    write_archive(files, path)
    say(
        f"wrote {path}: {counted(len(files), 'file')}, {counted(path.stat().st_size, 'byte')}; check it: "
        f"creamtea verify {quote(str(path))}"
    )


def verify(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A file that creamtea bundle wrote.")],
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Recompute every number of a bundle, offline and without a database, and say which differ.

    Metrics are computed from the outputs, significance with the stored seeds, human results from the ratings,
    and the whole report from these. Numbers that need a model, the training text or a computer's clock are
    listed as not recomputed.

    Exit code 0: every recomputed number is as stored; 1: some differ; 2: the file is not a whole bundle.
    """
    from creamtea.bundle import verifying

    shows_progress = not quiet and not as_json and sys.stderr.isatty()
    checked = verifying.verify(file, say_instead) if shows_progress else verifying.verify(file)
    if shows_progress:
        say_instead("")
    if as_json:
        say(json.dumps(asdict(checked), ensure_ascii=False, indent=1))
    else:
        for line in summary_lines(checked):
            say(line)
    raise typer.Exit(1 if checked.differences else 0)


def summary_lines(checked: Verification) -> list[str]:
    """Say what was recomputed, what was not and why, and what differs.

    A bundle may hold any text, so control characters are escaped: no text can forge a line.
    """
    out = [f"{checked.study} (number {checked.number}), packed by creamtea {checked.packed_by}"]
    changed = [f"{name} {then} (here {now})" for name, (then, now) in checked.versions.items() if then != now]
    out += [f"packed with {', '.join(changed)}: differences may come from that"] if changed else []
    total = sum(checked.recomputed.values())
    parts = ", ".join(f"{quantity} {count:,}" for quantity, count in checked.recomputed.items())
    out.append(f"recomputed: {counted(total, 'number')} ({parts})")
    for skipped in checked.not_recomputed:
        out.append(f"not recomputed: {skipped.what} ({len(skipped.places):,}): {skipped.reason}")
    count = len(checked.differences)
    out.append(f"differences: {count:,}" if count else "no differences: every recomputed number is as stored")
    for difference in checked.differences[:MAX_PRINTED]:
        stored, recomputed = _shortened(difference.stored), _shortened(difference.recomputed)
        out.append(f"  {difference.place}: stored {stored}, recomputed {recomputed}")
    if count > MAX_PRINTED:
        out.append(f"  … and {count - MAX_PRINTED:,} more (--json has all)")
    return [printable(line) for line in out]


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]} …"
