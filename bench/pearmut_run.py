"""Campaigns that creamtea exports, rated in a real Pearmut in Chromium, and imported again.

Pearmut needs Python 3.12 and 320 MB, so it lives in an environment of its own and is no part of the tests;
they read the files that this script recorded (tests/human/formats/pearmut/).

    python3.12 -m venv pearmut-venv && pearmut-venv/bin/pip install pearmut==1.1.6
    make browser
    python bench/pearmut_run.py pearmut-venv/bin/python
    … --record tests/human/formats/pearmut     # write the files that the tests read

Its server listens on 127.0.0.1 only (`pearmut run` listens on every address). For each protocol that both
know, a campaign with documents of two segments, practice, attention checks and errors marked beforehand is
exported, added by `pearmut add`, and rated on the page: errors by clicks on characters, categories and
severities in the toolbox, scores with the slider. What was done is compared with what the import of the
dashboard's download says, score by score and place by place. Every difference is printed; none is success.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "human"), str(TESTS / "human" / "formats" / "helpers")]

from pearmut_files import as_done, as_imported
from playwright.sync_api import Page, sync_playwright
from rating_page import launched
from small_campaigns import make_campaign

from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, find_format
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade
from creamtea.store.tables import ItemKind

PROTOCOLS = ("da", "esa", "cesa", "mqm")
TEXTS = (
    ("Der 🦊 läuft.\nSchnell & weit.", "Ein Fuchs <rennt>."),
    ("مرحبا يا 🦊\nوداعا", "狐は走る。👩‍👩‍👧も。"),
)
PROPOSED = {"start": 4, "end": 4, "severity": "minor"}  # the fox
SPAN_PLAN = ((0, 2), (14, 20))  # characters that are marked, where the text has them


def fill(database: Database, protocol: str) -> str:
    """Return the campaign's name."""
    items: list[dict[str, Any]] = []
    marks = protocol != "da"
    category = {"category": ["Accuracy", "Mistranslation"]} if protocol == "mqm" else {}
    for segment, outputs in enumerate(TEXTS):
        fields: dict[str, Any] = {
            "segment_index": segment,
            "document": "news",
            "source": f"Fox {segment}\n<b>&",
        }
        if marks and segment == 0:
            fields["proposals"] = {"0": [{**PROPOSED, **category}]}
        if protocol == "cesa":
            items.append({**fields, "systems": [0, 1], "outputs": list(outputs)})
            continue
        for system, output in enumerate(outputs):
            own = {name: value for name, value in fields.items() if name != "proposals" or system == 0}
            items.append({**own, "systems": [system], "outputs": [output]})
    expected = [{"start": [0, 1], "end": [2, 3], "severity": "major"}] if marks else None
    both = ["Das stimmt 🦊 nicht.", "Das stimmt."][: 2 if protocol == "cesa" else 1]
    for kind, said in (("tutorial", {"explanation": "Mark it"}), ("attention-check", {"warning": "Read it"})):
        guidance = {
            "steps": {} if protocol == "mqm" else {"0": [10, 30]},
            **({"spans": {"0": expected}} if expected else {}),
            **({"above": [[1, 0]]} if protocol == "cesa" and kind == "attention-check" else {}),
            **said,
        }
        if kind == "attention-check":
            guidance = {"spans": {}, "above": [], **guidance}
        own = {"kind": kind, "segment_index": -1, "weight": 0.0, "guidance": guidance, "source": kind}
        items.append({**own, "systems": [*range(len(both))], "outputs": both})
    name = f"{protocol} run"
    row = {"systems": ["plain", "beam 4"]}
    make_campaign(database, items, name=name, k=2, protocol=protocol, row=row, attention_every=2)
    return name


@contextmanager
def served(python: Path, root: Path) -> Any:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "uvicorn", "pearmut.app:app", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "PEARMUT_ROOT": str(root), "PYTHONPATH": ""}
    server = subprocess.Popen([*map(str, command), "--log-level", "warning"], env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                urlopen(f"{address}/annotate").close()
                break
            except URLError:
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def unit(text: str, character: int) -> int:
    return len(text[:character].encode("utf-16-le")) // 2


def rate(page: Page, address: str, campaign: dict[str, Any], user: str, shift: int) -> list[dict[str, Any]]:
    """Everything that the user is asked for; what was done, in characters."""
    done = []
    page.goto(f"{address}/annotate?{urlencode({'campaign_id': campaign['campaign_id'], 'user_id': user})}")
    page.wait_for_selector("#output_div .output_candidate")
    for _ in range(50):
        blocks = page.locator(".output_block")
        document = page.evaluate("() => [...document.querySelectorAll('.output_block')].length")
        items = find_document(campaign, user, page)
        assert len(items) == document
        for at, item in enumerate(items):
            for number, model in enumerate(item["tgt"]):
                score = (17 * len(done) + 5 * number + shift) % 101
                candidate = blocks.nth(at).locator(f".output_candidate[data-model={json.dumps(model)}]")
                done.append(answer(page, campaign, item, model, candidate, score, at))
        page.evaluate("document.querySelector('#output_div').firstElementChild.classList.add('before')")
        page.click("#button_next")
        page.wait_for_function("!document.querySelector('#output_div .before')")
        if page.locator("#button_next").input_value() == "Finished":
            return done
    raise AssertionError("50 screens and no end")


def find_document(campaign: dict[str, Any], user: str, page: Page) -> list[dict[str, Any]]:
    current = page.locator(".progress_current").get_attribute("data-id") or ""
    if current.startswith("welcome_"):
        return campaign["data_welcome"][int(current.removeprefix("welcome_"))]
    return campaign["data"][user][int(current)]


def answer(
    page: Page,
    campaign: dict[str, Any],
    item: dict[str, Any],
    model: str,
    candidate: Any,
    score: int,
    at: int,
) -> dict[str, Any]:
    text, protocol = item["tgt"][model], campaign["info"]["protocol"]
    rule = item.get("validation", {}).get(model, {})
    spans: list[dict[str, Any]] = []
    if protocol != "DA":
        for number, proposed in enumerate(item.get("error_spans", {}).get(model, [])):
            spans.append(
                {
                    **PROPOSED,
                    **({"category": proposed["category"].split("/")} if proposed["category"] else {}),
                    "proposed": number,
                }
            )
        wanted = [(0, 2)] if rule else [(start, end) for start, end in SPAN_PLAN if end < len(text)]
        for number, (start, end) in enumerate([*wanted, (None, None)] if not rule else wanted):
            severity = "major" if number == 0 else "minor"
            spans.append(mark(page, candidate, text, start, end, severity, protocol == "MQM"))
    if rule.get("score"):
        score = rule["score"][0] + 5 * (1 + at)
    elif item.get("validation"):
        score = 60
    if protocol == "cESA":
        score = score // 5 * 5
    if protocol != "MQM":
        candidate.locator("input[type=range]").evaluate(
            "(slider, score) => { slider.value = score; for (const name of ['input', 'change']) "
            "slider.dispatchEvent(new Event(name, {bubbles: true})) }",
            score,
        )
    return {
        "source": item["src"],
        "output": text,
        "score": None if protocol == "MQM" else score,
        "spans": sorted(spans, key=repr),
    }


def mark(
    page: Page, candidate: Any, text: str, start: int | None, end: int | None, severity: str, mqm: bool
) -> dict[str, Any]:
    if start is None or end is None:
        candidate.locator(".special_token").first.click()
        place: dict[str, Any] = {}
    else:
        last = unit(text, end + 1) - 1
        candidate.locator(f".tgt_char[data-i='{unit(text, start)}']").click()
        candidate.locator(f".tgt_char[data-i='{last}']").click()
        place = {"start": start, "end": end}
    toolbox = page.locator(".span_toolbox_parent").last
    toolbox.wait_for(state="visible")
    category: dict[str, Any] = {}
    if mqm:
        names = ["Accuracy", "Omission"] if start is None else ["Other"]
        toolbox.locator("select").nth(0).select_option(names[0])
        if len(names) > 1:
            toolbox.locator("select").nth(1).select_option(names[1])
        category = {"category": names}
    toolbox.locator(f"input.error_{severity}").click()
    page.mouse.move(2, 2)
    page.wait_for_timeout(700)  # the toolbox goes
    return {**place, "severity": severity, **category}


def compare(done: dict[str, list[dict[str, Any]]], folder: Path, name: str) -> list[str]:
    """What the import says otherwise than what was done."""
    facts = ImportFacts(name, campaign_file=folder / "campaign.json")
    content, not_kept = find_format("pearmut").read(folder / "annotations.json", facts, datetime.now(UTC))
    found, expected = as_imported(content), as_done(done)
    differences = [
        f"{name}: {key}: done {expected.get(key)}, imported {found.get(key)}"
        for key in sorted(set(expected) | set(found), key=repr)
        if expected.get(key) != found.get(key)
    ]
    spans = sum(len(one["spans"]) for one in expected.values())
    said = ", ".join(map(str, not_kept))
    checks = sum(ItemKind(item.kind).is_written for item in content.items)
    print(
        f"{name}: {len(expected)} answers, {spans} marked errors, {checks} practice items and checks: "
        f"{len(differences)} differences; counted: {said}"
    )
    return differences


def after_a_reset(address: str, campaign: dict[str, Any], folder: Path) -> list[str]:
    """The dashboard takes the first user's answers back: the import has the others' only."""
    first, *others = campaign["data"]
    body = {"campaign_id": campaign["campaign_id"], "user_id": first, "token": campaign["token"]}
    request = Request(
        f"{address}/reset-campaign", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urlopen(request).close()
    query = urlencode({"campaign_id": campaign["campaign_id"]})
    download(f"{address}/download-annotations?{query}", folder / "reset.json")
    facts = ImportFacts("reset", campaign_file=folder / "campaign.json")
    content, _ = find_format("pearmut").read(folder / "reset.json", facts, datetime.now(UTC))
    raters = sorted(person.pseudonym for person in content.raters)
    return [] if raters == sorted(others) else [f"after the reset of {first}: answers of {raters}"]


def download(url: str, path: Path) -> None:
    with urlopen(url) as answered:
        path.write_bytes(answered.read())


def photograph(page: Page, address: str, campaign: dict[str, Any], path: Path) -> None:
    user = next(iter(campaign["data"]))
    page.goto(f"{address}/annotate?{urlencode({'campaign_id': campaign['campaign_id'], 'user_id': user})}")
    page.wait_for_selector("#output_div .output_candidate")
    page.screenshot(path=path, full_page=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", type=Path, help="the Python of an environment that has Pearmut")
    parser.add_argument("--record", type=Path, help="a folder for the files that the tests read")
    parser.add_argument("--picture", type=Path, help="a PNG of each protocol's page, before it is rated")
    options = parser.parse_args()
    python = options.python.absolute()
    version = subprocess.check_output(
        [python, "-c", "from importlib.metadata import version; print(version('pearmut'))"], text=True
    ).strip()
    print("Pearmut", version)
    differences = []
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        url = f"sqlite:///{root}/creamtea.db"
        upgrade(url)
        database = open_database(url)
        names = {}
        for protocol in PROTOCOLS:
            names[protocol] = fill(database, protocol)
            export_campaign(database, names[protocol], "pearmut", root / protocol, "bench")
        database.close()
        environment = {**os.environ, "PEARMUT_ROOT": str(root), "PYTHONPATH": ""}
        files = [str(root / folder / "campaign.json") for folder in names]
        command = [str(python.parent / "pearmut"), "add", *files]
        subprocess.run(command, env=environment, check=True, cwd=root, stdout=subprocess.DEVNULL)
        with served(python, root) as address, sync_playwright() as playwright:
            browser = launched(playwright)
            for protocol, name in names.items():
                campaign = json.loads((root / "data/campaigns" / f"{name}.json").read_text())
                done = {}
                for shift, user in enumerate(campaign["data"]):
                    page = browser.new_page(viewport={"width": 1280, "height": 1200})
                    page.on("pageerror", lambda error: print("page:", error))
                    if options.picture and shift == 0:
                        photograph(page, address, campaign, options.picture / f"{protocol}.png")
                    done[user] = rate(page, address, campaign, user, 31 * shift)
                    page.close()
                query = urlencode({"campaign_id": name})
                download(f"{address}/download-annotations?{query}", root / protocol / "annotations.json")
                (root / protocol / "campaign.json").write_text(
                    json.dumps(
                        {key: value for key, value in campaign.items() if key != "token"}, ensure_ascii=False
                    )
                )
                differences += compare(done, root / protocol, name)
                differences += after_a_reset(address, campaign, root / protocol)
                if options.record:
                    target = options.record / f"{version}-{protocol}"
                    target.mkdir(parents=True, exist_ok=True)
                    for file in ("annotations.json", "campaign.json"):
                        shutil.copy(root / protocol / file, target / file)
                    (target / "done.json").write_text(json.dumps(done, ensure_ascii=False, indent=1) + "\n")
            browser.close()
    print("\n".join(differences) or "no difference")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
