"""A step in a context without an engine."""

import hashlib
import importlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from creamtea.contract.step import Checkpoints, LiveView, StepKind, StepParams, StepResult

T = TypeVar("T")


class FolderCheckpoints:
    """`creamtea.contract.step.Checkpoints` in a folder: one of its own, unless it is given one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._own = TemporaryDirectory() if folder is None else None
        self.folder = folder or Path(self._own.name)
        self.folder.mkdir(exist_ok=True)

    def save(self, name: str, source: Path) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{path.name}.new")  # several processes may share the folder
        shutil.copy(source, whole)
        whole.replace(path)

    def read(self, name: str, parse: Callable[[Path], T]) -> T | None:
        path = self.folder / name
        return parse(path) if path.exists() else None

    def names(self) -> list[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in files)

    def remove(self, name: str) -> None:
        self.folder.joinpath(name).unlink(missing_ok=True)


@dataclass
class TextFiles:
    """Text files in a folder, as a plan names them to steps."""

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_bytes(text.encode())
        self.digests[name] = hashlib.sha256(text.encode()).hexdigest()
        self.locations[name] = str(path)
        return name


@dataclass
class Context:
    """`creamtea.contract.step.StepContext` over folders, of a step of this kind."""

    kind: StepKind[Any]
    raw_params: Mapping[str, Any]  # as a plan stores them
    folders: Mapping[str, Sequence[Path]]  # by role
    output: Path = Path()  # "." stands for a new folder
    checkpoints: Checkpoints = field(default_factory=FolderCheckpoints)
    locations: dict[str, str] = field(default_factory=dict)
    cpus: int = 1
    gpus: float = 0.0
    params: StepParams = field(init=False)
    progresses: list[tuple[float, float, str]] = field(init=False, default_factory=list)
    views: list[LiveView] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.params = self.kind.params.model_validate(dict(self.raw_params))
        if self.output == Path():
            self._own = TemporaryDirectory()
            self.output = Path(self._own.name)
        self.output.mkdir(exist_ok=True)

    def input(self, role: str) -> Path:
        (folder,) = self.folders[role]
        return folder

    def inputs(self, role: str) -> list[Path]:
        return list(self.folders.get(role, []))

    def progress(self, done: float, total: float, message: str = "") -> None:
        self.progresses.append((done, total, message))

    def has_more_room(self) -> bool:
        return False

    def show(self, view: LiveView) -> None:
        self.views.append(view)

    def run(self) -> StepResult:
        """What the step returns; everything that it leaves is declared."""
        result: StepResult = getattr(importlib.import_module(self.kind.module), self.kind.function)(self)
        files = sorted(path.name for path in self.output.iterdir())
        assert self.kind.undeclared(self.params, result, files) == []
        return result
