"""The artefact store: whole files or none, on a local folder and on a remote file system."""

import errno
import hashlib
import io
import os
import pickle
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.contract.step import LiveExample, LiveView, PointRow
from creamtea.errors import DamagedArtefact, InfrastructureError, InputError, StepError
from creamtea.store.artefacts import ArtefactStore, StoredFile

PART = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda part: part not in (".", "..") and len(part.encode()) < 60
)
NAME = st.lists(PART, min_size=1, max_size=3).map("/".join)


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def no_name_is_a_folder(files: dict[str, bytes]) -> bool:
    return not any(other.startswith(f"{name}/") for name in files for other in files)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with one file."""
    return write(tmp_path / "out", {"a": b"content"})


@pytest.fixture
def stored(local: ArtefactStore, out: Path) -> StoredFile:
    """That file in the local store."""
    (file,) = local.put_folder(out)
    return file


def refuse(number: int, words: str) -> Callable[..., None]:
    def raising(*_: object, **__: object) -> None:
        raise OSError(number, words)

    return raising


# ---------------------------------------------------------------- put and materialise


@given(st.dictionaries(NAME, st.binary(max_size=50), max_size=5).filter(no_name_is_a_folder), st.booleans())
def test_a_folder_comes_back_as_it_was(files: dict[str, bytes], remote: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        store = ArtefactStore(f"memory://{uuid.uuid4().hex}" if remote else folder / "root")
        stored = store.put_folder(write(folder / "out", files) if files else folder)
        assert [file.name for file in stored] == sorted(files)
        for file in stored:
            assert file.digest == hashlib.sha256(files[file.name]).hexdigest()
            assert file.size == len(files[file.name])
            assert store.exists(file.digest)
            assert store.read(file.digest) == files[file.name]
        store.materialise(stored, folder / "in")
        assert contents(folder / "in") == files


def test_an_absent_object_is_told_from_one_that_cannot_be_looked_for(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not store.exists("0" * 64)
    with pytest.raises(InfrastructureError, match=f"artefact .*{'0' * 64} is missing: it was deleted"):
        store.read("0" * 64)
    monkeypatch.setattr(store.fs, "info", refuse(errno.EACCES, "not yours"))
    with pytest.raises(InfrastructureError, match="not yours"):
        store.exists("0" * 64)


class ReadTimeout(OSError):
    """As aiohttp and botocore raise while an object is read."""


class Breaking(io.BytesIO):
    """A file of which one line can be read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise ReadTimeout("the read timed out")
        return super().readline()


def test_an_object_that_fails_while_it_is_read_is_a_failure_of_the_store(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.fs, "open", lambda *_, **__: Breaking(b"first\nsecond\n"))
    with store.open("0" * 64, verify=False) as lines:
        assert next(lines) == b"first\n"
        with pytest.raises(InfrastructureError, match="the read timed out"):
            next(lines)
    with pytest.raises(InfrastructureError, match="the read timed out"):
        store.read("0" * 64)


def test_an_object_is_read_from_any_place(store: ArtefactStore, tmp_path: Path) -> None:
    (file,) = store.put_folder(write(tmp_path / "out", {"a": bytes(range(256)) * 100}))
    with store.open(file.digest) as opened:
        assert opened.seek(20_000) == 20_000
        assert opened.read(2) == bytes([20_000 % 256, 20_001 % 256])
        assert opened.tell() == 20_002
        assert opened.seek(-1, 2) == 25_599
        assert opened.read() == b"\xff"


def test_what_a_reader_of_an_object_does_wrong_is_not_the_stores_failure(
    local: ArtefactStore, stored: StoredFile
) -> None:
    with pytest.raises(PermissionError), local.open(stored.digest):
        raise PermissionError("of another file")


def test_equal_contents_are_one_object_which_is_made_young(local: ArtefactStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "out", {"a": b"same", "b/c": b"same", "d": b"other"})
    stored = local.put_folder(folder)
    assert [file.digest == stored[0].digest for file in stored] == [True, True, False]
    assert len(contents(Path(local.root) / "objects")) == 2
    path = Path(local.object_path(stored[0].digest))
    os.utime(path, (0, 0))
    before = path.stat()
    local.put_folder(folder)
    assert path.stat().st_ino == before.st_ino, "it is not written again"
    assert path.stat().st_mtime > time.time() - 3600


def test_local_inputs_are_read_only_links(
    local: ArtefactStore, stored: StoredFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.materialise([stored], tmp_path / "in")
    found = (tmp_path / "in" / "a").stat()
    assert found.st_ino == Path(local.object_path(stored.digest)).stat().st_ino
    assert found.st_mode & 0o222 == 0
    monkeypatch.setattr(Path, "hardlink_to", refuse(errno.EXDEV, "Invalid cross-device link"))
    local.materialise([stored], tmp_path / "symbolic")
    assert (tmp_path / "symbolic" / "a").is_symlink()
    assert (tmp_path / "symbolic" / "a").read_bytes() == b"content"


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "a//b", "./a", "", "a\0b", "a/"])
def test_a_name_cannot_leave_its_folder(local: ArtefactStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(StepError, match="is not a plain relative path"):
        local.materialise([StoredFile(name, "0" * 64, 1)], tmp_path / "in")


def undecodable(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).write_bytes(b"")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda out: write(out, {"/".join(["x" * 100] * 3): b""}), "has 302 characters"),
        (lambda out: os.mkfifo(out / "odd"), "the step's output 'odd' is neither a file nor a folder"),
        (lambda out: (out / "odd").symlink_to("nowhere"), "'odd' is neither a file nor a folder"),
        (undecodable, "is not valid UTF-8"),
    ],
    ids=["too long for an index", "pipe", "dangling", "not UTF-8"],
)
def test_what_cannot_be_stored_is_an_error(
    local: ArtefactStore, out: Path, make: Callable[[Path], object], message: str
) -> None:
    make(out)
    with pytest.raises(StepError, match=message):
        local.put_folder(out)


# ---------------------------------------------------------------- damage


def damage(store: ArtefactStore, digest: str) -> None:
    """One bit of the object flips, as on a failing disk: its size stays."""
    path = store.object_path(digest)
    content = bytearray(store.fs.cat_file(path))
    content[len(content) // 2] ^= 4
    if store.local:
        Path(path).chmod(0o644)
    store.fs.pipe_file(path, bytes(content))


def test_a_flipped_bit_is_found_when_an_object_is_read(
    store: ArtefactStore, out: Path, tmp_path: Path
) -> None:
    (stored,) = store.put_folder(out)
    damage(store, stored.digest)
    with pytest.raises(DamagedArtefact, match=f"artefact .*{stored.digest} is damaged"):
        store.read(stored.digest)
    with pytest.raises(DamagedArtefact), store.open(stored.digest):
        pass
    assert store.exists(stored.digest), "whoever only reads leaves it"
    with pytest.raises(DamagedArtefact, match=rf"{stored.digest} \(a\) is damaged: .* moved to .*/damaged/"):
        store.materialise([stored], tmp_path / "in")
    assert contents(tmp_path / "in") == {}
    assert not store.exists(stored.digest)
    assert store.is_set_aside(stored.digest)
    store.put_folder(out)
    assert not store.is_set_aside(stored.digest)
    store.materialise([stored], tmp_path / "in")
    assert contents(tmp_path / "in") == {"a": b"content"}
    damage(store, stored.digest)
    assert store.put_file(out / "a") == stored.digest
    assert store.read(stored.digest) == b"content", "a damaged object of its size was replaced"


def test_an_object_that_was_made_again_meanwhile_is_not_set_aside(
    local: ArtefactStore, stored: StoredFile, out: Path, tmp_path: Path
) -> None:
    read = tmp_path / "link"
    read.hardlink_to(local.object_path(stored.digest))
    damage(local, stored.digest)
    local.put_folder(out)
    local._set_aside(stored.digest, read)
    assert local.read(stored.digest) == b"content"


def test_a_damaged_object_that_cannot_be_moved_is_named(
    local: ArtefactStore, stored: StoredFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(local, stored.digest)
    monkeypatch.setattr(local.fs, "mv", refuse(errno.EROFS, "Read-only file system"))
    with pytest.raises(DamagedArtefact, match=r"is damaged: .*Read-only file system.*delete it"):
        local.materialise([stored], tmp_path / "in")


def test_a_transfer_that_fails_once_is_no_damage(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtefactStore(f"memory://{uuid.uuid4().hex}")
    (stored,) = store.put_folder(out)
    opened, real = [io.BytesIO(b"contend")], store.fs.open
    monkeypatch.setattr(store.fs, "open", lambda *given: opened.pop() if opened else real(*given))
    store.materialise([stored], tmp_path / "in")
    assert contents(tmp_path / "in") == {"a": b"content"}


def test_a_further_worker_of_a_step_does_not_read_what_the_first_has_read(
    local: ArtefactStore, stored: StoredFile, tmp_path: Path
) -> None:
    damage(local, stored.digest)
    local.materialise([stored], tmp_path / "in", verify=False)
    assert local.exists(stored.digest)


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked process that does the work; a second Python would take too long."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_crash_before_the_rename_leaves_no_object(
    local: ArtefactStore, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(local, "_move", lambda *_, **__: os._exit(9))
        assert in_child(lambda: local.put_folder(out)) == 9
    digest = hashlib.sha256(b"content").hexdigest()
    (left,) = (Path(local.root) / "tmp").iterdir()
    assert left.read_bytes() == b"content"
    assert not local.exists(digest)

    local.put_folder(out)
    assert local.read(digest) == b"content"
    local.check_writable()
    assert left.exists()  # it might be another process's
    os.utime(left, (time.time() - 2 * 86400,) * 2)
    local.check_writable()
    assert not left.exists()


def test_processes_may_put_the_same_object_at_once(local: ArtefactStore, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    folder = write(tmp_path / "out", {f"{i}": content + bytes([i]) for i in range(20)})
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0 if len(local.put_folder(folder)) == 20 else 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    local.materialise(local.put_folder(folder), tmp_path / "in")
    assert contents(tmp_path / "in") == contents(folder)
    assert contents(Path(local.root) / "tmp") == {}


# ---------------------------------------------------------------- the root


def test_a_root_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    remedy = "set CREAMTEA_ARTEFACTS to a folder or address that can be written"
    for root, why in (
        ("/proc/creamtea", "No such file or directory"),
        (tmp_path / "root", "Not a directory"),
    ):
        with pytest.raises(InputError) as error:
            ArtefactStore(root).check_writable()
        assert str(error.value) == f"cannot write artefacts to {root}: {why}; {remedy}"
    with pytest.raises(InputError, match=r"cannot use ftpx://host/x for artefacts: .*ftpx"):
        ArtefactStore("ftpx://host/x")


def test_a_writable_root_is_made_for_its_owner_alone(store: ArtefactStore) -> None:
    store.check_writable()
    assert store.fs.isdir(store.path_of("objects"))
    assert not store.local or Path(store.root).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_remedy(
    local: ArtefactStore, out: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "fsync", refuse(code, os.strerror(code)))
    with pytest.raises(InfrastructureError) as error:
        local.put_folder(out)
    path = local.object_path(hashlib.sha256(b"content").hexdigest())
    assert str(error.value).startswith(f"no space left for {path}: free some on the disk of {local.root} ")
    assert "or set CREAMTEA_ARTEFACTS to another root" in str(error.value)
    assert contents(Path(local.root) / "tmp") == {}


def test_a_store_can_be_pickled_and_its_relative_root_is_fixed(
    store: ArtefactStore, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = store.put_folder(out)
    monkeypatch.chdir(out)
    assert pickle.loads(pickle.dumps(store)).read(stored.digest) == b"content"
    assert ArtefactStore("root").root == str(out / "root")


# ---------------------------------------------------------------- what a step says of itself while it runs


def test_progress_is_read_as_written(store: ArtefactStore) -> None:
    assert store.read_progress("key", 7) is None
    store.write_progress("key", 7, 1.0, 4.0, "süß")
    store.write_progress("key", 7, 2.0, 4.0, "süß")
    progress = store.read_progress("key", 7)
    assert progress.at <= time.time()
    assert (progress.done, progress.total, progress.message) == (2.0, 4.0, "süß")
    assert store.read_progress("key", 8) is None, "an earlier attempt's"


def test_what_a_step_shows_is_that_of_its_last_attempt(store: ArtefactStore) -> None:
    example = LiveExample("süß", "sweet", [(20, "suess"), (40, "süß")])
    view = LiveView([PointRow("train_loss", 20, 1.5)], [example], None)
    store.write_live("key", 7, view)
    assert store.read_live("key", 7) == view
    assert store.read_live("key", 8) is None
    assert store.read_progress("key", 7) is None


@pytest.mark.parametrize("content", [b"", b'{"done": 1', b"\xff", b"[1]"])
def test_progress_that_cannot_be_read_is_none(store: ArtefactStore, content: bytes) -> None:
    store.write_progress("key", 7, 1.0, 4.0, "")
    store.fs.pipe_file(store.path_of("progress", "key.json"), content)
    assert store.read_progress("key", 7) is None


# ---------------------------------------------------------------- checkpoints


def loaded_bytes(store: ArtefactStore) -> bytes | None:
    """What the next attempt would load."""
    return store.checkpoints("key").read("state.pt", Path.read_bytes)


def save(store: ArtefactStore, source: Path, content: bytes, name: str = "state.pt") -> None:
    source.write_bytes(content)
    store.checkpoints("key").save(name, source)


def test_a_checkpoint_is_replaced_and_dropped(store: ArtefactStore, tmp_path: Path) -> None:
    assert loaded_bytes(store) is None
    for content in (b"first", b"second"):
        save(store, tmp_path / "state", content)
        assert loaded_bytes(store) == content
    assert store.checkpoints("other").read("state.pt", Path.read_bytes) is None
    store.drop_checkpoints("key")
    assert loaded_bytes(store) is None
    store.drop_checkpoints("key")  # nothing left: no error


def test_a_checkpoint_is_read_from_a_copy_that_does_not_stay(store: ArtefactStore, tmp_path: Path) -> None:
    save(store, tmp_path / "state", b"first")
    copies = []

    def parse(copy: Path) -> bytes:
        copies.append(copy)
        save(store, tmp_path / "state", b"second")
        return copy.read_bytes()

    assert store.checkpoints("key").read("state.pt", parse) == b"first"
    assert not copies[0].exists()


def test_a_crash_while_saving_keeps_the_old_checkpoint(
    local: ArtefactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(local, tmp_path / "state", b"first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: os._exit(9))
        assert in_child(lambda: save(local, tmp_path / "state", b"second")) == 9
    assert loaded_bytes(local) == b"first"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda whole: whole[:600],
    "empty": lambda whole: b"",
    "a bit of the content": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "a bit of the checksum": lambda whole: whole[:-1] + bytes([whole[-1] ^ 0x40]),
    "zeros": lambda whole: whole[:100] + bytes(400) + whole[500:],
    "longer": lambda whole: whole + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_named_and_deleted(
    local: ArtefactStore, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    content = os.urandom(1000)
    for name in ("state.pt", "best.pt"):
        save(local, tmp_path / "state", content, name)
    assert loaded_bytes(local) == content
    path = Path(local.root, "checkpoints", "key", "state.pt")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InfrastructureError, match=f"{path} does not match its checksum"):
        loaded_bytes(local)
    assert local.checkpoints("key").names() == ["best.pt"]
    assert loaded_bytes(local) is None
