"""Executors run attempts of steps: their interface, their inputs and outcomes, and the room on nodes.

They know nothing of the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import TypeAdapter

from creamtea.contract.step import Resources, StepResult
from creamtea.store.artefacts import StoredFile


@dataclass(frozen=True)
class StepTask:
    """One attempt of a step, in the form that a worker receives."""

    key: str
    fence: int
    name: str  # its place in the study, for people
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[list[StoredFile]]]  # role -> the files of each input step
    locations: dict[str, str]
    resources: Resources
    artefacts: str  # root of the artefact store
    attempt: int = 1


# values of `StepOutcome.error_kind` that are not failures of the step:
GAVE_WAY = "gave way"  # it saved a checkpoint and stopped, to go on with more workers
DAMAGED = "damaged input"  # an input file is damaged, and its step has to make it again


@dataclass(frozen=True)
class StepOutcome:
    """The outcome of an attempt. `error_kind` None: it succeeded."""

    result: StepResult = field(default_factory=StepResult)
    files: list[StoredFile] = field(default_factory=list)
    error_kind: str | None = None
    error: str = ""

    @classmethod
    def failure(cls, kind: str, error: str) -> StepOutcome:
        return cls(error_kind=kind, error=storable(error))


def storable(text: str) -> str:
    """Replace characters that a database or terminal refuses.

    PostgreSQL refuses NUL; half of a surrogate pair (from a file name that is not UTF-8) has no encoding.
    """
    return text.replace("\0", "�").encode("utf-8", "backslashreplace").decode()


# tasks and outcomes travel as plain values: a worker with another creamtea can still report its version
TASKS = TypeAdapter(StepTask)
OUTCOMES = TypeAdapter(StepOutcome)


# ---------------------------------------------------------------- where they run


@dataclass(frozen=True)
class Amounts:
    cpus: float
    gpus: float
    memory_gb: float  # GiB; 0 for steps that set no memory

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpus - other.cpus, self.gpus - other.gpus, self.memory_gb - other.memory_gb)

    def covers(self, other: Amounts) -> bool:
        return self.cpus >= other.cpus and self.gpus >= other.gpus and self.memory_gb >= other.memory_gb

    def __str__(self) -> str:
        return f"cpus={self.cpus:g}, gpus={self.gpus:g}, memory_gb={self.memory_gb:.4g}"


NOTHING = Amounts(0.0, 0.0, 0.0)
SHOWN = 8  # names in a message


@dataclass(frozen=True)
class Need:
    """What a step, or each of its workers, needs of a node."""

    amounts: Amounts
    exclusive: bool = False  # nothing else may run on the node
    workers: tuple[int, int] = (1, 1)  # at least, at most
    group: str | None = None  # the node must be in this worker group
    node: str | None = None  # the node must have this name

    @classmethod
    def of(cls, resources: Resources) -> Need:
        least, most = resources.workers
        amounts = Amounts(resources.cpus, resources.gpus, resources.memory_gb or 0.0)
        where = (resources.worker_group, resources.node)
        return cls(amounts, resources.exclusive, (least, most), *where)


@dataclass(frozen=True)
class Names:
    """The names by which a study may refer to a node."""

    own: frozenset[str] = frozenset()  # host name, address
    group: str = ""  # the worker group of the node

    def match(self, need: Need) -> bool:
        return need.group in (None, self.group) and (need.node is None or need.node in self.own)


@dataclass
class Node:
    """A machine and its free resources."""

    name: str
    total: Amounts
    free: Amounts
    names: Names = Names()
    idle: bool = True

    def take(self, need: Need) -> None:
        self.free = NOTHING if need.exclusive else self.free - need.amounts
        self.idle = False

    def has_room(self, need: Need) -> bool:
        fits = self.free.covers(need.amounts) and (self.idle or not need.exclusive)
        return fits and self.names.match(need)


class Capacity:
    """The nodes, and the steps that each could start now."""

    def __init__(
        self,
        nodes: Mapping[str, Amounts],
        running: Iterable[tuple[Sequence[str], Need]] = (),
        shared: bool = True,
        names: Mapping[str, Names] | None = None,
    ) -> None:
        """Count the nodes' free room.

        `nodes`: each node's resources. `running`: each attempt's nodes, chosen by `place`, and its need.
        `shared`: False if a node runs one attempt at a time. `names`: the names of nodes in studies.
        """
        self._shared = shared
        called = names or {}
        self.nodes = {
            name: Node(name, total, total, called.get(name, Names())) for name, total in nodes.items()
        }
        for places, need in running:
            self.take(places, need)

    def take(self, names: Sequence[str], need: Need) -> None:
        for name in names:
            if name in self.nodes:  # a lost node's attempts have not been reported yet
                self.nodes[name].take(need if self._shared else replace(need, exclusive=True))

    def place(self, need: Need, without: Collection[str] = ()) -> list[str]:
        """Return a node for each worker if the step can start now; empty if there is no room.

        The node with the fewest free GPUs comes first, so that others keep several; of equal nodes, the one
        with the most free CPUs.
        """
        nodes = [replace(node) for name, node in self.nodes.items() if name not in without]
        return _placed(need, nodes, lambda node: (node.free.gpus, -node.free.cpus))

    def next_to_free(self, need: Need, without: Collection[str] = ()) -> list[str]:
        """Return the nodes to keep free for a step that has to wait."""
        nodes = [node for name, node in self.nodes.items() if name not in without]
        nodes.sort(key=lambda node: (node.free.gpus, node.free.cpus), reverse=True)
        idle = [replace(node, free=node.total, idle=True) for node in nodes]
        return _placed(need, idle, lambda node: 0)

    def refusal(self, need: Need) -> str | None:
        """Return why a step with this need can never run here; None if it can."""
        if self.next_to_free(need):
            return None
        named = [node for node in self.nodes.values() if node.names.match(need)]
        if not named:
            return self._unknown(need)
        kinds = Counter(str(node.total) for node in named)
        available = "; ".join(f"{count} with {kind}" if count > 1 else kind for kind, count in kinds.items())
        least, _ = need.workers
        if least > 1:
            request = f"{need.amounts} for each of at least {least} workers, for which there is no room"
        else:
            request = f"{need.amounts} on one node, and no node has that"
        of_group = f" of worker group {need.group}" if need.group else ""
        return f"the step asks for {request} (nodes{of_group}: {available})"

    def _unknown(self, need: Need) -> str:
        """Return a message: no node has the name or group that a step asks for."""
        if not self.nodes:
            return f"the step asks for {need.amounts} on one node, and there is none"
        of_group = [node for node in self.nodes.values() if need.group in (None, node.names.group)]
        if not of_group:
            groups = ", ".join(sorted({node.names.group for node in self.nodes.values()} - {""}))
            return (
                f"the step asks for worker group {need.group}, and no node is in that group "
                f"(groups: {groups or 'none'})"
            )
        known = sorted({name for node in of_group for name in node.names.own})
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        some = ", ".join(known[:SHOWN]) + more
        request = f"the step asks in worker group {need.group} for" if need.group else "the step asks for"
        return f"{request} node {need.node}, and no node is called that (names: {some or 'none'})"


def _placed(need: Need, nodes: list[Node], order: Callable[[Node], Any]) -> list[str]:
    """Choose and take a node for each worker; empty if the least number of workers has no room."""
    least, most = need.workers
    names: list[str] = []
    while len(names) < most and (fitting := [node for node in nodes if node.has_room(need)]):
        node = min(fitting, key=order)
        node.take(need)
        names.append(node.name)
    # the number of workers is a power of two: further workers would have nothing to do
    largest = 1 << (len(names).bit_length() - 1) if names else 0
    return names[: max(least, largest)] if len(names) >= least else []


@dataclass(frozen=True)
class FinishedAttempt:
    task: StepTask
    outcome: StepOutcome


class Executor(Protocol):
    address: str  # the address of the Ray cluster; empty for this machine
    opening: str  # a message before the first `capacity`, which may take seconds

    def check(self) -> None:
        """Raise InputError if steps cannot run: nothing answers at the address, or access is refused."""

    def capacity(self) -> Capacity:
        """Return the free room; the first call starts the executor. InputError if that fails."""

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        """Begin the attempt on the nodes that `Capacity.place` chose; return at once."""

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        """Return the attempts finished since the last call; wait up to `timeout` seconds for one."""

    def cancel(self, task: StepTask) -> None:
        """Stop the attempt, which `poll` then does not report; do nothing if it has finished."""

    def shutdown(self) -> None:
        """Stop what is still running and release all resources."""
