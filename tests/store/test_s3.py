"""The artefact store on S3: moto's server in this process."""

import hashlib
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import moto_s3
import pytest
import toy_catalogue
from fsspec.registry import _registry as classes
from toy_cluster import free_port
from toy_study import ToyStudy

from creamtea.contract.step import Resources
from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import execute
from creamtea.errors import InfrastructureError, InputError
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.areas import entries
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.upkeep import collect, remove_study, unneeded, usage

pytestmark = pytest.mark.slow  # the server alone takes a second to start
MEBIBYTE = 1 << 20


@pytest.fixture
def s3(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the server, whose credentials are in the environment, with an empty bucket "lab"."""
    import boto3
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="lab")
    yield client
    bucket = boto3.resource("s3", endpoint_url=s3_endpoint).Bucket("lab")
    bucket.objects.all().delete()
    bucket.delete()
    s3fs.S3FileSystem.clear_instance_cache()


def opened() -> ArtefactStore:
    store = ArtefactStore("s3://lab/artefacts")
    store.check_writable()
    return store


def write(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def test_files_and_checkpoints_come_back_as_they_were(s3: Any, tmp_path: Path) -> None:
    store = opened()
    (stored,) = store.put_folder(write(tmp_path / "out", "größe.txt", b"jam"))
    assert stored.digest == hashlib.sha256(b"jam").hexdigest()
    store.materialise([stored], tmp_path / "in")
    assert (tmp_path / "in" / "größe.txt").read_bytes() == b"jam"

    checkpoints = store.checkpoints("key")
    assert checkpoints.read("model/a", Path.read_bytes) is None
    for content in (b"first", b"second"):
        checkpoints.save("model/a", write(tmp_path / "scratch", "a", content) / "a")
    assert checkpoints.read("model/a", Path.read_bytes) == b"second"
    checkpoints.save("model.parts/1/b", tmp_path / "scratch" / "a")
    assert sorted(checkpoints.names()) == ["model.parts/1/b", "model/a"]
    checkpoints.remove("model.parts/1/b")
    checkpoints.remove("model.parts/1/b")
    assert checkpoints.names() == ["model/a"]
    store.drop_checkpoints("key")
    store.drop_checkpoints("key")
    assert checkpoints.names() == []
    assert {entry.area for entry in entries(store)} == {"objects"}


def test_another_process_sees_what_was_written(s3: Any, tmp_path: Path) -> None:
    store = opened()
    digest = hashlib.sha256(b"jam").hexdigest()
    assert not store.exists(digest)
    s3.put_object(Bucket="lab", Key=f"artefacts/objects/{digest[:2]}/{digest}", Body=b"jam")
    assert store.exists(digest)


def test_large_files_are_uploaded_in_parts(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from s3fs import core

    for size in (6 << 30, 700 << 30, 4 << 40):  # S3: at most 10,000 parts of at most 5 GiB
        part = core.calculate_chunksize(size)
        assert part <= 5 << 30
        assert -(-size // part) <= 10_000
    monkeypatch.setattr(core, "calculate_chunksize", lambda size, chunksize: 5 * MEBIBYTE)
    content = bytes(range(256)) * (11 * MEBIBYTE // 256)
    scratch = write(tmp_path / "scratch", "large", content)
    store = opened()
    (stored,) = store.put_folder(scratch)
    store.materialise([stored], tmp_path / "in")
    assert (tmp_path / "in" / "large").read_bytes() == content
    checkpoints = store.checkpoints("key")
    checkpoints.save("large", scratch / "large")
    assert s3.head_object(Bucket="lab", Key="artefacts/checkpoints/key/large")["ETag"].endswith('-3"')
    assert checkpoints.read("large", Path.read_bytes) == content


def test_a_damaged_object_is_found_out(s3: Any, tmp_path: Path) -> None:
    store = opened()
    (stored,) = store.put_folder(write(tmp_path / "out", "a", b"jam"))
    s3.put_object(Bucket="lab", Key=f"artefacts/objects/{stored.digest[:2]}/{stored.digest}", Body=b"cream")
    with pytest.raises(InfrastructureError, match="damaged"):
        store.materialise([stored], tmp_path / "in")


@pytest.fixture
def toy_steps_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEP_KINDS, "toy", toy_catalogue.TOY)


def test_a_study_runs_and_its_leftovers_are_collected(
    s3: Any, toy_steps_known: None, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    for name, last in (("first", "own"), ("second", "other")):
        study = ToyStudy(database, store, tmp_path, name)
        study.add("shared")
        study.add(last, "count", before=["shared"])  # with checkpoints
        study.run()
        assert set(study.states().values()) == {"succeeded"}
    uses = usage(database, store)
    assert {use.studies for use in uses if use.part == "outputs"} == {
        ("first",),
        ("second",),
        ("first", "second"),
    }
    s3.create_multipart_upload(Bucket="lab", Key="artefacts/checkpoints/x/large")
    s3.create_multipart_upload(Bucket="lab", Key="elsewhere/large")
    remove_study(database, "first")
    young = unneeded(database, store)  # moto says that every upload began in 2010
    assert {entry.area for entry in young} == {"uploads"}
    now = time.time()
    monkeypatch.setattr("creamtea.upkeep.time.time", lambda: now + 7200)
    garbage = unneeded(database, store, timedelta(hours=1))
    assert {"objects", "uploads"} <= {entry.area for entry in garbage}
    assert collect(store, garbage, timedelta(hours=1)) == garbage
    assert [upload["Key"] for upload in s3.list_multipart_uploads(Bucket="lab")["Uploads"]] == [
        "elsewhere/large"
    ]
    assert len([entry for entry in entries(store) if entry.area == "objects"]) == 2
    assert study.submit().reused == 2


# ---------------------------------------------------------------- what may be wrong


def refused(root: str = "s3://lab/artefacts") -> str:
    with pytest.raises(InputError) as refusal:
        ArtefactStore(root).check_writable()
    return str(refusal.value)


def test_no_such_bucket(s3: Any) -> None:
    assert "there is no bucket jam" in refused("s3://jam/artefacts")


def test_no_rights(s3: Any, s3_endpoint: str, toy_steps_known: None, tmp_path: Path) -> None:
    """Not for the controller, nor for a worker, which has keys of its own."""
    params = {"name": "step", "log": str(tmp_path)}
    task = StepTask("k" * 64, 1, "toy", "toy", 1, params, {}, {}, Resources(), "s3://lab/artefacts")
    with moto_s3.rights_enforced(s3_endpoint):  # moto knows no user with our key
        assert "no rights on bucket lab" in refused()
        outcome = execute(task)
    assert outcome.error_kind == "infrastructure"
    assert "no rights on bucket lab" in outcome.error
    assert "\n" not in outcome.error


def test_no_credentials(s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    assert "AWS_ACCESS_KEY_ID" in refused()


def test_the_server_does_not_answer(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    assert "AWS_ENDPOINT_URL" in refused()


def test_the_extra_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(classes, "s3", raising=False)
    assert "pip install 'creamtea[s3]'" in refused()
