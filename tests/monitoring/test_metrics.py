"""Figures for Prometheus: what they count, and who gets them."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select, update
from toy_study import ToyStudy

from creamtea.engine import lease as leases
from creamtea.errors import InputError
from creamtea.monitoring import exposition, is_allowed, load_token, served
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Event, Metric, StepRow, StudyRow

TOKEN = "a-token-of-its-own"


@pytest.fixture
def study(database: Database, tmp_path: Path) -> ToyStudy:
    """Three steps: one has succeeded after a retry, one is ready, one is pending."""
    toys = ToyStudy(database, ArtefactStore(tmp_path / "artefacts"), tmp_path)
    toys.add("first")
    toys.add("second", before=["first"])
    toys.add("third", before=["second"])
    toys.submit()
    with database.transaction() as session:
        now = database.now(session)
        rows = {row.key: row for row in session.scalars(select(StepRow))}
        first, second, third = (rows[toys.keys[name]] for name in ("first", "second", "third"))
        first.state, first.finished_at = "succeeded", now
        second.state, third.state = "ready", "pending"
        session.add(Event(step_key=first.key, at=now, what="retry", detail="infrastructure: x"))
        session.add(Metric(step_key=first.key, name="tokens_per_second", subject="", value=1234.5, detail={}))
    return toys


def figures(text: bytes) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_the_figures_are_those_of_the_database(database: Database, study: ToyStudy) -> None:
    leases.acquire(database, "", None)
    shown = figures(exposition(database))
    assert shown["creamtea_steps", "succeeded", "toy"] == 1
    assert shown["creamtea_steps", "ready", "toy"] == 1
    assert shown["creamtea_studies", "queued"] == 1
    assert 0 <= shown["creamtea_queue_seconds", "toy"] < 600
    assert shown["creamtea_step_retries_total", "toy"] == 1
    assert shown["creamtea_training_tokens_per_second", "first", "toys"] == 1234.5
    assert 0 < shown["creamtea_controller_lease_seconds",] <= leases.LEASE.total_seconds()
    assert shown["creamtea_step_leases", "expired"] == 0


def test_a_step_that_is_tried_again_has_not_waited_while_it_ran(database: Database, study: ToyStudy) -> None:
    with database.transaction() as session:
        now, hours = database.now(session), timedelta(hours=5)
        session.execute(update(StudyRow).values(created_at=now - hours))
        session.execute(update(StepRow).where(StepRow.state == "succeeded").values(finished_at=now - hours))
    assert figures(exposition(database))["creamtea_queue_seconds", "toy"] >= hours.total_seconds()
    with database.transaction() as session:
        key = study.keys["second"]
        session.add(Event(step_key=key, at=now, what="retry", detail="infrastructure: a worker was lost"))
    assert figures(exposition(database))["creamtea_queue_seconds", "toy"] < 600


def test_an_empty_database_has_figures_too(database: Database) -> None:
    assert figures(exposition(database))["creamtea_controller_lease_seconds",] < 0


@pytest.fixture
def address(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CREAMTEA_METRICS_TOKEN", TOKEN)
    with served(database, "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


def ask(address: str, authorization: str | None = None) -> tuple[int, bytes]:
    headers = {} if authorization is None else {"Authorization": authorization}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_controllers_port_answers_only_who_shows_the_token(address: str) -> None:
    for wrong in (None, "", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"):
        assert ask(f"{address}/metrics", wrong and wrong.encode().decode("latin-1")) == (401, b"")
    status, body = ask(f"{address}/metrics", f"Bearer {TOKEN}")
    assert (status, b"creamtea_controller_lease_seconds" in body) == (200, True)
    assert ask(f"{address}/", f"Bearer {TOKEN}")[0] == 404


def test_there_are_no_metrics_without_a_token(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREAMTEA_METRICS_TOKEN", raising=False)
    with pytest.raises(InputError, match="CREAMTEA_METRICS_TOKEN"), served(database, "127.0.0.1", 0):
        pass


def test_a_taken_port_is_refused(database: Database, address: str) -> None:
    port = int(address.rpartition(":")[2])
    with pytest.raises(InputError, match=f"127.0.0.1:{port}"), served(database, "127.0.0.1", port):
        pass


def test_the_token_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREAMTEA_METRICS_TOKEN", raising=False)
    assert load_token() is None
    file = tmp_path / "token"
    monkeypatch.setenv("CREAMTEA_METRICS_TOKEN_FILE", str(file))
    with pytest.raises(InputError, match="cannot read"):
        load_token()
    file.write_text(f"{TOKEN}\n")
    assert load_token() == TOKEN
    file.write_text("short\n")
    with pytest.raises(InputError, match="fewer than"):
        load_token()
    assert not is_allowed(None, TOKEN)
