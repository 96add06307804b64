"""Texts that are not ours: what a terminal would obey is shown instead."""

import io
import json
import sys

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from creamtea.bundle.archive import Difference
from creamtea.bundle.verifying import NotRecomputed, Verification
from creamtea.cli.bundle import summary_lines
from creamtea.cli.following import PlainLines, StepCounts
from creamtea.cli.plugins import _show
from creamtea.cli.printing import hand_over, say, say_instead, show
from creamtea.engine import events
from creamtea.printable import printable, printable_lines
from creamtea.report.terminal import PrintingConsole

FORGED = "bleu\r\x1b[3A\x1b[Jno differences\x9b2J\u202egnorw\ud800"
SHOWN = r"bleu\r\u001b[3A\u001b[Jno differences\u009b2J\u202egnorw\ud800"


def test_controls_overrides_and_lone_surrogates_are_shown_and_other_text_stays() -> None:
    assert printable(FORGED) == SHOWN
    others = "Tee\t☕ 狐 हिन्दी שלום\u200f 👩‍👩‍👧 é\u0301\u00a0\\n"
    assert printable(others) == others
    assert (printable("a\nb"), printable_lines("a\r\nb\n")) == (r"a\nb", "a\\r\nb\n")


def test_json_keeps_its_values() -> None:
    value = {"text": FORGED, "list": ["\x7f", "\\", '"']}
    assert json.loads(printable_lines(json.dumps(value, ensure_ascii=False, indent=1))) == value


def test_a_bundle_forges_no_line_of_verify() -> None:
    forged = f"{FORGED}\nno differences: every recomputed number is as stored"
    checked = Verification(
        study=forged,
        number=1,
        packed_by=forged,
        versions={forged: (forged, "1")},
        recomputed={forged: 1},
        not_recomputed=(NotRecomputed(forged, forged, (forged,)),),
        differences=(Difference(forged, forged, forged),),
    )
    printed = summary_lines(checked)
    assert all(line.isprintable() for line in printed)
    assert printed[-2:][0] == "differences: 1"
    assert not any(line.startswith("no differences") for line in printed)


def test_messages_progress_and_lines_of_campaigns(capsys: pytest.CaptureFixture[str]) -> None:
    say(FORGED)
    say_instead(FORGED)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"\r{SHOWN}")  # without the terminal's own codes
    PlainLines(StepCounts(1, 0))(events.Notice(FORGED))
    assert capsys.readouterr().err.endswith(f"{SHOWN}\n")
    show(False, None, [f"reason: {FORGED}\nclosed by admin"])
    assert capsys.readouterr().out == f"reason: {SHOWN}\\nclosed by admin\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_results_reach_files_and_pipes_exactly(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    hand_over("a\x1b[Jb")
    assert capsys.readouterr().out == (r"a\u001b[Jb" if terminal else "a\x1b[Jb") + "\n"


def test_tables_and_live_lines_of_a_terminal() -> None:
    forged = FORGED.replace("\ud800", "")
    table = Table("name")
    table.add_row(Text(forged))
    console = PrintingConsole(file=io.StringIO(), force_terminal=True, color_system=None, width=100)
    console.print(table)
    with Live(Text(forged), console=console, auto_refresh=False):
        console.print(Text(forged))
    printed = console.file.getvalue()
    assert printed.count(r"bleu\u001b[3A\u001b[Jno differences\u009b2J\u202egnorw") >= 3
    assert not [obeyed for obeyed in ("\x1b[3A", "\x9b", "\u202e") if obeyed in printed]
    lines_of_table = printed.splitlines()[:5]
    assert len({len(line) for line in lines_of_table}) == 1, "its borders stand below each other"


def test_a_reason_with_brackets_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "no such file: [/opt/x]"
    row = {"family": "objective", "kind": "x", "distribution": "d", "version": "1", "state": "broken"}
    _show([{**row, "about": reason}])
    assert reason in " ".join(capsys.readouterr().out.split())
