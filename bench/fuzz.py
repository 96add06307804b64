"""Spoilt studies, files of ratings and links: each is taken or refused in words, within seconds.

    python bench/fuzz.py studies --count 100000 --jobs 2
    python bench/fuzz.py steps --count 2000
    python bench/fuzz.py imports --count 10000
    python bench/fuzz.py links --count 10000

Prints how many were taken and refused, the slowest, and every case that ended otherwise, with the seed that
makes it again (--first SEED --count 1); exits with 1 if there is one. `studies` spoils the text of the
shipped studies and checks those that are taken against the files beside them, too. `steps` spoils a small one
and runs the first steps of what is taken, over text: none may fail for what could be seen at once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from first_steps import first_steps
from spoiling import spoilt

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 5.0  # seconds
CHUNK = 250  # cases of one process at a time
# ratings as another tool would write them
RATINGS = "rater,segment,system,value,source,output\n" + "".join(
    f"{rater},{segment},{system},{1 + (segment + value) % 6},Source {segment}.,Output {system}.\n"
    for rater in ("ann", "bob")
    for segment in (1, 2, 3)
    for system, value in (("a", 1), ("b", 4))
)

# marked errors, for the formats that have them
MARKED = [
    {
        "rater": rater,
        "segment": segment,
        "document": f"doc{segment // 2}",
        "system": system,
        "source": f"Source {segment} 🙂.",
        "output": f"Output {system}.",
        "payload": {
            "spans": [
                {
                    "start": segment,
                    "end": segment + 2,
                    "severity": "major",
                    "category": ["Accuracy", "Omission"],
                },
                {"severity": "minor"},
            ][:segment]
        },
    }
    for rater in ("ann", "bob")
    for segment in (0, 1, 2)
    for system in ("a", "b")
]
# values of JSON where others belong
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**40, 10**400, 0.5, 1e300, float("nan"), float("inf"), [], {}, [[]]),
    *("", " ", "x", "a\0b", "None", "__RESET__", {"x": 1}, [None], "9" * 400, "mqm", "DA", "\ud7ff"),
)


@dataclass
class Outcome:
    """Of some cases."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, 0)  # seconds, seed
    wrong: list[tuple[int, str]] = field(default_factory=list)  # seed, traceback or what happened

    def add(self, other: Outcome) -> None:
        self.counts += other.counts
        self.slowest = max(self.slowest, other.slowest)
        self.wrong += other.wrong


# ---------------------------------------------------------------- what is spoilt


@contextmanager
def studies() -> Iterator[Callable[[random.Random], str]]:
    from creamtea.errors import InputError
    from creamtea.study.loader import load_study
    from creamtea.study.plan import plan
    from creamtea.study.warnings import warnings_of

    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "studies").rglob("*.yaml"))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"

        def case(rng: random.Random) -> str:
            path.write_text(spoilt(rng.choice(texts), rng), encoding="utf-8", errors="surrogatepass")
            try:
                loaded = load_study(path)
                planned = plan(loaded.study, None, loaded.errors)
                warnings_of(loaded.study, planned, None, loaded.place_of)
            except InputError:
                return "refused"
            try:
                plan(loaded.study, ROOT / "studies", loaded.errors)
            except InputError:
                return "taken, but for its files"
            return "taken"

        yield case


@contextmanager
def imports() -> Iterator[Callable[[random.Random], str]]:
    from creamtea.errors import InputError
    from creamtea.human.formats.base import ImportFacts
    from creamtea.human.formats.exchange import BUILT_IN, export_campaign, import_campaign
    from creamtea.store.database import open_database

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = open_database(f"sqlite:///{folder / 'fuzz.db'}")
        plain = folder / "plain.csv"
        plain.write_text(RATINGS, encoding="utf-8")

        def facts(campaign: str) -> ImportFacts:
            return ImportFacts(campaign, "contrastive-da", "test", "en", "de")

        import_campaign(database, plain, "csv", facts("base"), "fuzz")
        bases = {kind: folder / kind for kind in ("csv", "jsonl")}
        for kind, base in bases.items():
            export_campaign(database, "base", kind, base, "fuzz")

        marked = folder / "marked.jsonl"
        marked.write_text("".join(f"{json.dumps(row)}\n" for row in MARKED), encoding="utf-8")
        import_campaign(database, marked, "jsonl", ImportFacts("marked", "mqm", "test", "en", "de"), "fuzz")
        others = {kind: folder / f"other-{kind}" for kind in BUILT_IN if kind not in bases}
        for kind, base in others.items():
            export_campaign(database, "marked", kind, base, "fuzz")

        def case(rng: random.Random) -> str:
            kind = rng.choice(BUILT_IN)
            origin = folder / f"spoilt.{kind}"
            name = f"c{rng.getrandbits(62)}"
            told = facts(name)
            if kind in others:
                origin = _spoilt_folder(others[kind], folder / f"spoilt-{kind}", rng)
                if kind in ("appraise", "mqm"):
                    [origin] = origin.iterdir()
                protocol = None if kind != "appraise" else rng.choice(("mqm", "esa", "da"))
                told = ImportFacts(name, protocol)
            elif kind == "csv" and rng.random() < 0.4:
                origin.write_text(spoilt(RATINGS, rng), encoding="utf-8")
            else:
                origin = _spoilt_folder(bases[kind], folder / f"spoilt-{kind}", rng)
            try:
                import_campaign(database, origin, kind, told, "fuzz")
            except InputError:
                return f"{kind} refused"
            return f"{kind} taken"

        yield case
        database.close()


def _spoilt_folder(base: Path, folder: Path, rng: random.Random) -> Path:
    """A copy of an export with one spoilt file, mostly with the digest that belongs to it."""
    files = [file for file in sorted(base.rglob("*")) if file.is_file()]
    texts = {str(file.relative_to(base)): file.read_text(encoding="utf-8") for file in files}
    chosen = rng.choice(list(texts))
    before = texts[chosen]
    json_too = chosen.endswith((".json", ".jsonl")) and rng.random() < 0.7
    texts[chosen] = _spoilt_json(before, rng) if json_too else spoilt(before, rng)
    if "campaign.json" in texts and rng.random() < 0.9:
        old, new = (hashlib.sha256(text.encode()).hexdigest() for text in (before, texts[chosen]))
        texts["campaign.json"] = texts["campaign.json"].replace(old, new)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", errors="replace"))
    return folder


def _spoilt_json(text: str, rng: random.Random) -> str:
    """With one value of one line (of the whole, where it is one object) replaced, dropped or added."""
    lines = [text] if text.startswith("{\n") else text.split("\n")
    at = rng.randrange(len(lines))
    try:
        whole = json.loads(lines[at])
    except ValueError:
        return spoilt(text, rng)
    node: Any = whole
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(node[key], (dict, list)) and rng.random() < 0.8:
            node = node[key]
        elif rng.random() < 0.2:
            del node[key]
            break
        else:
            node[key] = rng.choice(ODD)
            break
    lines[at] = json.dumps(whole, ensure_ascii=False)
    return "\n".join(lines)


@contextmanager
def links() -> Iterator[Callable[[random.Random], str]]:
    """Requests at the gate, the only part that people without a session reach; what it lets in is counted."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from starlette.testclient import TestClient

    from creamtea.access import sessions
    from creamtea.store.database import open_database
    from creamtea_webapp import session
    from creamtea_webapp.gate import routes
    from creamtea_webapp.gate.middleware import Gate

    def inside(request: Any) -> PlainTextResponse:
        return PlainTextResponse("inside")

    with tempfile.TemporaryDirectory() as name:
        database = open_database(f"sqlite:///{Path(name) / 'fuzz.db'}")
        session.database = lambda: database  # type: ignore[assignment]
        session.cookie_name = lambda: "creamtea"  # type: ignore[assignment]
        app = Starlette(
            routes=[*routes.entrance_routes(), Route("/{rest:path}", inside)], middleware=[Middleware(Gate)]
        )
        secret = sessions.create_link(database, "reader")

        def case(rng: random.Random) -> str:
            people = TestClient(app, follow_redirects=False)
            path = rng.choice(("/", "/enter", "/?page=report&study=demo", "/?campaign=3", "/_stcore/stream"))
            method = rng.choice(("GET", "GET", "POST", "HEAD", "PUT"))
            body = spoilt(secret, rng).encode("utf-8", "surrogatepass")
            cookie = "creamtea=" + spoilt(secret, rng)
            headers = {"Cookie": cookie.encode("latin-1", "replace"), "Origin": rng.choice((b"", b"x"))}
            if rng.random() < 0.5:
                del headers["Origin"]
            # a client refuses what is no address at all; bytes that are none of a header's, too
            address = spoilt(path, rng).replace("\n", "").replace("\r", "")
            if body == secret.encode():
                return "not spoilt"
            url = "http://testserver/" + address.lstrip("/").encode("utf-8", "surrogatepass").decode(
                "latin-1"
            )
            try:
                request = people.build_request(method, url, content=body, headers=headers)
            except Exception as error:  # of the client, before the server has seen anything
                return f"not sent: {type(error).__name__}"
            response = people.send(request)
            if response.status_code >= 500 or response.text == "inside":
                raise RuntimeError(f"{method} {url!r}: {response.status_code} {response.text[:80]!r}")
            return str(response.status_code)

        yield case
        database.close()


# ---------------------------------------------------------------- running


def run(what: str, seeds: range) -> Outcome:
    outcome = Outcome()
    with KINDS[what]() as case:
        for seed in seeds:
            started = time.perf_counter()
            try:
                outcome.counts[case(random.Random(seed))] += 1
            except Exception:
                outcome.wrong.append((seed, traceback.format_exc(limit=-4)))
            seconds = time.perf_counter() - started
            outcome.slowest = max(outcome.slowest, (seconds, seed))
            if seconds > LIMIT:
                outcome.wrong.append((seed, f"took {seconds:.1f} s"))
    return outcome


KINDS = {"studies": studies, "steps": first_steps, "imports": imports, "links": links}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=KINDS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chunks = [
        range(first, min(first + CHUNK, options.first + options.count))
        for first in range(options.first, options.first + options.count, CHUNK)
    ]
    total, started = Outcome(), time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, outcome in enumerate(pool.map(partial(run, options.what), chunks), 1):
            total.add(outcome)
            print(f"\r{min(number * CHUNK, options.count):,} of {options.count:,}", end="", file=sys.stderr)
    print(file=sys.stderr)
    seconds, seed = total.slowest
    counts = ", ".join(f"{count:,} {what}" for what, count in total.counts.most_common())
    print(f"{options.what}: {counts}; slowest {seconds:.2f} s (seed {seed}); {len(total.wrong)} wrong")
    print(f"{time.perf_counter() - started:.0f} s")
    for seed, what in total.wrong[:20]:
        print(f"\nseed {seed}: {what}")
    sys.exit(1 if total.wrong else 0)


if __name__ == "__main__":
    main()
