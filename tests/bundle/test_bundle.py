"""A bundle verifies as it was packed; whatever number of it is changed is found and named."""

import errno
import importlib.metadata
import json
import random
import shlex
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from media_files import CAPTIONS, png, wav
from property_tests import FIXTURES_ARE_SHARED
from relisted_bundles import relisted
from sqlalchemy import select

from creamtea.bundle import archive
from creamtea.bundle.archive import LEFT_OUT, MANIFEST, TABLES, columns_of, json_bytes, sha256, write_archive
from creamtea.bundle.packing import pack
from creamtea.bundle.verifying import NOTHING, Verification, count_numbers, differences, verify
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.human.making.settings import CampaignSettings
from creamtea.report.build import build_report
from creamtea.report.configuration import SECRET_SETTINGS
from creamtea.report.export import to_values
from creamtea.store.database import Database
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.tables import Assignment, Base, Campaign, Item, ItemKind, Rater, StudyRow, StudyStep

pytestmark = pytest.mark.slow
Verify = Callable[[dict[str, bytes]], Verification]


def places(checked: Verification) -> str:
    return "\n".join(difference.place for difference in checked.differences)


def one(rows: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
    return next(row for row in rows if all(row[name] == value for name, value in values.items()))


# ---------------------------------------------------------------- as packed


def test_a_bundle_as_it_was_packed_has_no_difference(home, tmp_path: Path) -> None:
    checked = verify(home.write(tmp_path / "tea.zip"))
    assert checked.differences == ()
    counted = checked.recomputed
    assert counted["report"] > 300
    assert b"Where marked errors come from" in home.files["report.json"]
    assert counted["score with a metric"] > 50
    assert counted["compare with the baseline"] > 10
    assert counted["ratings"] == 2 * 2 * 2 * 12  # campaigns, raters, systems, segments
    assert counted["registered plans"] == 2
    left = {left.what: left for left in checked.not_recomputed}
    assert "prepare test set" in left
    assert "completion_code" in left["registered plans"].reason


def test_equal_bytes_and_nothing_private(home, tmp_path: Path) -> None:
    again = pack(home.database, home.store, 1)
    first, second = home.write(tmp_path / "a.zip"), tmp_path / "b.zip"
    write_archive(again, second)
    assert first.read_bytes() == second.read_bytes()
    everything = b"\n".join(home.files.values())
    for secret in (b"Real-Name", b"prolific-", b"annika@", b"PROLIFIC-7Q", str(home.folder).encode()):
        assert secret not in everything
    assert b'"r1"' in everything


def test_what_tells_who_a_rater_is_is_left_out() -> None:
    # a new column is either harmless, and listed here, or left out (creamtea/bundle/rows.py)
    assert set(columns_of(Rater)) == {
        *("id", "campaign_id", "pseudonym", "created_at", "consented_at", "excluded_at", "forgotten_at")
    }
    assert set(Assignment.__table__.columns.keys()) - set(columns_of(Assignment)) == set(LEFT_OUT[Assignment])
    assert LEFT_OUT[Assignment].keys() >= {"comment", "skip_reason", "draft"}


def test_every_table_is_packed_or_left_out_on_purpose() -> None:
    # a new table that reports read belongs into creamtea/bundle/rows.py
    of_files = {table.__tablename__ for table, _ in TEXT_FILES.values()}
    private = {"access_token", "web_session", "audit_event", "controller", "event"}
    packed = {table.__tablename__ for table in TABLES}
    assert set(Base.metadata.tables) == packed | of_files | private


def test_no_code_of_a_campaign_is_in_a_bundle() -> None:
    codes = {name for name in CampaignSettings.model_fields if name.endswith(("_code", "_url"))}
    assert set(SECRET_SETTINGS) == codes | {"contact"}


def test_the_commands(home, tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("bundle", "tea", "--out", "my tea.zip")
    assert (code, shlex.split(out.partition("check it: ")[2])) == (0, ["creamtea", "verify", "my tea.zip"])
    (tmp_path / "my tea.zip").rename(tmp_path / "tea.zip")
    assert (tmp_path / "tea.zip").read_bytes() == home.write(tmp_path / "same.zip").read_bytes()
    code, _, said = run("bundle", "tea", "--out", "tea.zip")
    assert (code, "already" in said) == (2, True)
    code, out, _ = run("verify", "tea.zip")
    assert (code, "no differences" in out) == (0, True)


def test_what_people_read_is_as_it_was_packed(home, verified: Verify) -> None:
    manifest = json.loads(home.files[MANIFEST])
    manifest["study"]["name"] = "another-study"
    files = {**home.files, MANIFEST: json_bytes(manifest), "README.txt": b"BLEU 99", "files/evil.txt": b""}
    found = {each.place: (each.stored, each.recomputed) for each in verified(files).differences}
    assert found.keys() == {"manifest.json: study", "README.txt", "files/evil.txt"}
    assert found["manifest.json: study"] == ("another-study", "tea")


# ---------------------------------------------------------------- single numbers


def test_each_changed_number_is_named(changed, home) -> None:
    """Of several at once: where they stand, and what follows from them."""
    parts = {"signature", "segments", "bootstrap"}
    output = next(name for name in home.files if "outputs/nllb" in name)

    def metrics(rows: Any) -> None:
        next(row for row in rows if row["name"] == "bleu" and row["detail"].keys() == parts)["value"] += 0.25
        one(rows, name="delta", subject="chrf")["detail"]["p_two_sided"] = 0.0123

    def outputs(rows: Any) -> None:
        rows[3]["text"] += " niemand"

    def ratings(rows: Any) -> None:
        plain = next(row for row in rows if row["payload"] is None)
        plain["step"] = 25 - plain["step"]
        next(row for row in rows if row["payload"])["payload"]["score"] += 1

    def plans(rows: Any) -> None:
        one(rows, name="taste")["registered"]["delta"] = 0.01
        one(rows, name="coded")["registered"]["ratings_per_item"] = 7  # whose digest nobody can compute

    tables = {"metric": metrics, "rating": ratings, "campaign": plans}
    files = ((f"tables/{name}.jsonl", change) for name, change in tables.items())
    checked = changed(*files, (output, outputs))
    found = {difference.place: difference for difference in checked.differences}
    assert {
        "score/gpt/test/bleu: bleu/value",
        "report.json/systems/test/systems/gpt/bleu/value",
        "compare/nllb/test/chrf: delta of chrf/detail/p_two_sided",
        f"{output}: SHA-256",
        "score/nllb/test/bleu: bleu/value",
        "report.json/human/taste/means/gpt/mean/value",
        "campaign marked: rating of gpt, item 0, by r1",
        "campaign taste: registered plan: digest",
        "campaign taste: registered plan: delta",
        "campaign coded: registered plan: ratings_per_item",
    } <= found.keys()
    metric = found["score/gpt/test/bleu: bleu/value"]
    assert metric.stored == pytest.approx(metric.recomputed + 0.25)


def test_a_changed_setting_and_a_step_without_resources_are_named(changed) -> None:
    def setting(rows: Any) -> None:
        rows[0]["spec"]["significance"]["samples"] = 10

    def resources(rows: Any) -> None:
        rows[0]["resources"] = 3

    found = places(changed(("tables/study.jsonl", setting), ("tables/step.jsonl", resources)))
    assert "study 1: config hash" in found
    assert "plan of the study" in found


@pytest.mark.parametrize(
    ("name", "number", "column", "value"),
    [
        ("study", 1, "code_version", "half \ud800"),
        ("metric", 3, "subject", "\udfff"),
        ("step", 2, "params", {"kind": ["\ud83d"]}),
        ("item", 5, "outputs", ["a\0b"]),
        ("item", 1, "guidance", {"\ud800": 1}),
    ],
)
def test_text_that_no_database_can_hold(changed, name: str, number: int, column: str, value: Any) -> None:
    def change(rows: Any) -> None:
        rows[number - 1][column] = value

    with pytest.raises(InputError, match=rf"tables/{name}\.jsonl, line {number}, column {column}: found a"):
        changed((f"tables/{name}.jsonl", change))


# ---------------------------------------------------------------- any number


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all numbers."""
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in numbers(inner, (*path, key))]
    if isinstance(value, list):
        return [found for key, inner in enumerate(value) for found in numbers(inner, (*path, key))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


# file → whether something follows from a number at this path: of a rating from its score, and not from the
# row's own number
OF_ANY_NUMBER: dict[str, Callable[[tuple[Any, ...]], bool]] = {
    "report.json": lambda path: True,
    "tables/metric.jsonl": lambda path: True,
    "tables/rating.jsonl": lambda path: path[-1] in ("step", "score"),
    "files/": lambda path: True,
}


@settings(max_examples=8, suppress_health_check=FIXTURES_ARE_SHARED, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_whatever_number_is_changed_is_found(changed, home, seed: int) -> None:
    draw = random.Random(seed)
    folder, follows = draw.choice(list(OF_ANY_NUMBER.items()))
    name = draw.choice([name for name in home.files if name.startswith(folder)])

    def change(value: Any) -> None:
        *above, last = draw.choice([path for path in numbers(value) if follows(path)])
        for key in above:
            value = value[key]
        value[last] += draw.choice([1, 3])

    with suppress(InputError):  # rows that do not go together: an index that does not increase
        assert changed((name, change)).differences


# ---------------------------------------------------------------- bad bundles


def rezipped(files: dict[str, bytes], path: Path, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_bad_bundles_get_one_message(home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = home.write(tmp_path / "whole.zip").read_bytes()
    path = tmp_path / "bad.zip"

    def refused(words: str) -> None:
        with pytest.raises(InputError) as caught:
            verify(path)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    refused("No such file")
    path.write_bytes(whole[: len(whole) // 2])
    refused("not a complete ZIP archive")
    path.write_text("tea")
    refused("(File is not a zip file); give one of `creamtea bundle`")
    rezipped({"ä": b""}, path)
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\xff\xff"))
    refused("not a complete ZIP archive")
    rezipped({**home.files, "../../evil.sh": b""}, path)
    refused("not a path within the bundle")
    rezipped({**home.files, "more.txt": b""}, path)
    refused("more.txt: the manifest does not list it")
    rezipped({name: text for name, text in home.files.items() if name != "report.json"}, path)
    refused("report.json: it is missing")
    rezipped({**home.files, "report.json": home.files["report.json"].replace(b"1", b"2", 1)}, path)
    refused("report.json is not the file that was packed")
    rezipped({"tea": b"1"}, path)
    refused("no manifest.json")
    other = json.loads(home.files[MANIFEST]) | {"schema": "0001"}
    rezipped({**home.files, MANIFEST: json_bytes(other)}, path)
    refused("verify it with the version that packed it")
    rezipped(relisted({**home.files, "tables/rating.jsonl": b'{"id": NaN}\n'}), path)
    refused("tables/rating.jsonl, line 1: not JSON")
    rezipped(relisted({**home.files, "tables/rating.jsonl": b'{"id": 1}\n'}), path)
    refused("tables/rating.jsonl, line 1: its keys")
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        text = rezipped({MANIFEST: home.files[MANIFEST]}, path, method).read_bytes()
        path.write_bytes(text[:60] + b"\xff" * 100 + text[160:])
        refused(f"{MANIFEST} cannot be unpacked")
    damaged = bytearray(whole)
    damaged[len(whole) // 3] ^= 0xFF
    path.write_bytes(bytes(damaged))
    refused(str(path))
    monkeypatch.setattr("creamtea.bundle.archive.MAX_BYTES", 1000)
    path.write_bytes(whole)
    refused("more than a bundle may have")


def test_a_study_that_is_not_there(home) -> None:
    with pytest.raises(InputError, match="no study 'coffee'"):
        pack(home.database, home.store, "coffee")


def test_checks_of_an_open_campaign_are_not_given_away(home, own: Database) -> None:
    """Raters who see the bundle would know the answers; once the campaign is closed, nobody rates."""

    def change(state: str, first: ItemKind) -> None:
        with own.transaction() as session:
            campaign = session.scalars(select(Campaign).where(Campaign.name == "taste")).one()
            campaign.state = state
            items = select(Item).where(Item.campaign_id == campaign.id).order_by(Item.id)
            session.scalars(items).first().kind = first

    for kind, said in (("attention-check", "attention check"), ("repeat", "repeat")):
        change("launched", ItemKind(kind))
        refusal = f"'taste' is open, .* \\(1 {said}\\): close it first, or use --with"
        with pytest.raises(InputError, match=refusal):
            pack(own, home.store, "tea")
        assert pack(own, home.store, "tea", with_checks=True)
    change("closed", ItemKind.ATTENTION)
    assert pack(own, home.store, "tea")


# ---------------------------------------------------------------- media files


def test_files_beside_sources_are_in_it_and_checked(home, verified: Verify, changed) -> None:
    pictures = {name: content for name, content in home.files.items() if name.startswith("media/")}
    assert set(pictures.values()) == {png(1, 1), png(3, 3), wav(0.1), CAPTIONS}
    assert all(name == f"media/{sha256(content)}" for name, content in pictures.items())
    name = min(pictures)
    place = f"campaign taste: media files: {name.removeprefix('media/')}"
    assert place in places(verified({**home.files, name: png(2, 2)}))
    without = {other: content for other, content in home.files.items() if other != name}
    assert name.removeprefix("media/") in places(verified(without))

    def other(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["media"])["media"][0]["description"] = "a cat"

    found = places(
        changed(("tables/campaign_media.jsonl", lambda rows: rows.pop(0)), ("tables/item.jsonl", other))
    )
    assert "campaign taste: media files" in found
    assert "registered plan: items" in found


# ---------------------------------------------------------------- the file


def test_a_bundle_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.zip"
    monkeypatch.setattr(archive, "MAX_BYTES", 5)
    with pytest.raises(InputError, match="1 files and 6 bytes unpacked, more than a bundle may have"):
        archive.write_archive({"a": b"123456"}, path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(InputError, match="No space left"):
        archive.write_archive({"a": b"123"}, path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_in_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("tea")
    with pytest.raises(InputError, match="Not a directory"):
        archive.write_archive({"a": b"123"}, tmp_path / "file" / "new.zip")


def test_two_that_write_one_file_at_once_leave_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.zip"
    real, others = zipfile.ZipFile.writestr, [{"a": b"the other's"}]

    def beside_another(self: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        if others:
            archive.write_archive(others.pop(), path)
        real(self, info, content)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", beside_another)
    archive.write_archive({"a": b"ours"}, path)
    with zipfile.ZipFile(path) as written:
        assert written.read("a") == b"ours"
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------- differences


def test_places_are_named_by_what_readers_know() -> None:
    old = {
        "sections": [{"key": "means", "rows": [{"name": "plain", "setting": "seed 1", "cells": {"m": 1.0}}]}]
    }
    new = json.loads(json.dumps(old))
    new["sections"][0]["rows"][0]["cells"]["m"] = 1.0 + 1e-8
    (found,) = differences(old, new, "report.json")
    assert found.place == "report.json/means/plain seed 1/m"
    assert list(differences(old, old, "")) == []
    new["sections"][0]["rows"][0]["cells"]["m"] = 1.0 + 1e-11  # of another order of additions
    assert list(differences(old, new, "")) == []
    assert [d.stored for d in differences([1], [1, 2], "")] == [NOTHING]
    assert list(differences(1, True, "")) != []


# ---------------------------------------------------------------- other versions


def test_of_another_versions_report_the_numbers_are_compared(
    home, changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.__version__", "99.0")

    def other_words(report: dict[str, Any]) -> None:
        report["about"] = "Other words."
        systems = section(report, "systems")
        table = systems["blocks"][0]["blocks"][0]
        table["rows"][0]["cells"]["older"] = {"value": 3.0, "state": "ok"}
        del table["rows"][1]["cells"]["bleu"]

    checked = changed(("report.json", other_words))
    assert checked.differences == ()
    assert checked.recomputed["report"] > 0.9 * count_numbers(json.loads(home.files["report.json"]))
    left = {left.what: left for left in checked.not_recomputed}
    assert "1 are not compared" in left["report.json"].reason
    assert left["report.json"].places[0].endswith("/older/value")

    def another_number(report: dict[str, Any]) -> None:
        table = section(report, "systems")["blocks"][0]["blocks"][0]
        table["rows"][0]["cells"]["bleu"]["value"] += 1

    (difference,) = changed(("report.json", another_number)).differences
    assert difference.place.endswith("/bleu/value")


def section(report: dict[str, Any], key: str) -> dict[str, Any]:
    return next(section for section in report["sections"] if section["key"] == key)


# ---------------------------------------------------------------- submitted again, and plug-ins


def test_ratings_made_for_another_submission_go_along_if_the_outputs_are_the_same(
    home, own: Database, verified: Verify
) -> None:
    with own.transaction() as session:
        taste = session.scalars(select(Campaign).where(Campaign.name == "taste")).one()
        first = session.scalars(select(StudyRow)).one()
        spec = {**first.spec, "description": "with another sentence"}
        values = {column: getattr(first, column) for column in columns_of(StudyRow)}
        again = StudyRow(**{**values, "id": None, "spec": spec, "config_hash": digest(spec)})
        other = StudyRow(**{**values, "id": None})  # with other outputs, or none
        session.add_all([again, other])
        session.flush()
        for place in session.scalars(select(StudyStep).where(StudyStep.study_id == first.id)).all():
            row = {column: getattr(place, column) for column in columns_of(StudyStep)}
            session.add(StudyStep(**{**row, "study_id": again.id}))
        row = {column: getattr(taste, column) for column in columns_of(Campaign)}
        session.add(Campaign(**{**row, "id": None, "name": "of others", "study_id": other.id}))
    files = pack(own, home.store, again.id)
    told = json.dumps(to_values(build_report(own, again.id)))
    assert "Campaign of others is left out: its raters saw other outputs" in told
    assert b"of others" not in files["report.json"]
    checked = verified(files)
    assert checked.differences == ()
    assert checked.recomputed["ratings"] == 2 * 2 * 2 * 12


def test_secrets_of_campaigns_in_the_studys_file_stay_out(home, own: Database, verified: Verify) -> None:
    """A digest that covers them cannot be recomputed; everything else can."""
    raters = {"contact": "jo@example.org", "completion_code": "PROLIFIC-8R", "questions": ["contact?"]}
    written = {"later": {"raters": raters, "attention": {"failing_code": "F4D5"}}}
    with own.transaction() as session:
        study = session.scalars(select(StudyRow)).one()
        study.spec = {**study.spec, "campaigns": written}
    files = pack(own, home.store, "tea")
    secrets = (b"jo@example.org", b"PROLIFIC-8R", b"F4D5")
    assert [name for name, text in files.items() if any(secret in text for secret in secrets)] == []
    checked = verified(files)
    assert checked.differences == ()
    (left,) = (each for each in checked.not_recomputed if each.what == "digests of the study")
    assert "study 1: campaigns.later.raters.contact" in left.reason


def test_a_plug_in_that_an_input_was_made_with_is_in_no_key_and_must_be_here(changed, home) -> None:
    """A step's resources also name the plug-ins of its inputs; its key names its own plug-ins only."""

    def made_with(version: str) -> Verification:
        def change(rows: Any) -> None:
            for row in rows:
                row["resources"]["plugins"] = {"pytest": version}

        return changed(("tables/step.jsonl", change))

    assert made_with(importlib.metadata.version("pytest")).differences == ()
    checked = made_with("0.0")
    assert checked.differences == ()
    left = {one.what: one.reason for one in checked.not_recomputed}
    assert "plug-in pytest 0.0" in left["keys of steps"]
    assert "plug-in pytest 0.0" in left["report.json"]
