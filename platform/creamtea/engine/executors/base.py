"""Attempts of steps: what an executor is given and gives back, and what all executors have in common.

They run attempts, and know nothing of the database.
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
    """One attempt of a step, as a worker receives it."""

    key: str
    fence: int
    name: str  # its place in the study, for people
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[list[StoredFile]]]  # role: for each input step its files
    locations: dict[str, str]
    resources: Resources
    artefacts: str  # root of the artefact store
    attempt: int = 1


GAVE_WAY = "gave way"  # instead of an error kind: it saved a checkpoint, to go on with more workers
DAMAGED = "damaged input"  # likewise: an input is not what was stored, and its step has to make it again


@dataclass(frozen=True)
class StepOutcome:
    """How an attempt ended. `error_kind` None: it succeeded.

    GAVE_WAY and DAMAGED are not failures of the step.
    """

    result: StepResult = field(default_factory=StepResult)
    files: list[StoredFile] = field(default_factory=list)
    error_kind: str | None = None
    error: str = ""

    @classmethod
    def failure(cls, kind: str, error: str) -> StepOutcome:
        return cls(error_kind=kind, error=storable(error))


def storable(text: str) -> str:
    """Return a library's text as every database and terminal takes it.

    PostgreSQL refuses NUL, and half of a surrogate pair (from a file name that is not UTF-8) has no encoding.
    """
    return text.replace("\0", "�").encode("utf-8", "backslashreplace").decode()


# as plain values, so that a worker with another creamtea can say so
TASKS = TypeAdapter(StepTask)
OUTCOMES = TypeAdapter(StepOutcome)


# ---------------------------------------------------------------- where they run


@dataclass(frozen=True)
class Amounts:
    cpus: float
    gpus: float
    memory_gb: float  # GiB; steps that name no memory count as needing none

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
    """What a step needs of its node, or each of its workers of theirs."""

    amounts: Amounts
    exclusive: bool = False  # nothing else may run on the node
    workers: tuple[int, int] = (1, 1)  # at least, at most
    group: str | None = None  # of nodes
    node: str | None = None  # one of its names

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
    """A machine, with what is left of it."""

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
    """The nodes, and what can be started on each of them now."""

    def __init__(
        self,
        nodes: Mapping[str, Amounts],
        running: Iterable[tuple[Sequence[str], Need]] = (),
        shared: bool = True,
        names: Mapping[str, Names] | None = None,
    ) -> None:
        """Count the nodes' room.

        `nodes`: all that each node has. `running`: where attempts run, as `place` chose, and what they need.
        `shared`: False if a node runs one attempt at a time. `names`: how a study may call the nodes.
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

    @property
    def has_cpus(self) -> bool:
        return any(node.total.cpus > 0 for node in self.nodes.values())

    def place(self, need: Need, without: Collection[str] = ()) -> list[str]:
        """Return the node of each worker if it can start now; empty if there is no room.

        GPUs are filled one node after the other, so that some node keeps several; the rest is spread.
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
        """Say why a step with this need can never run here; None if it can."""
        if self.next_to_free(need):
            return None
        named = [node for node in self.nodes.values() if node.names.match(need)]
        if not named:
            return self._unknown(need)
        kinds = Counter(str(node.total) for node in named)
        has = "; ".join(f"{count} with {kind}" if count > 1 else kind for kind, count in kinds.items())
        least, _ = need.workers
        if least > 1:
            asked = f"{need.amounts} for each of at least {least} workers, for which there is no room"
        else:
            asked = f"{need.amounts} on one node, and no node has that"
        of_group = f" of worker group {need.group}" if need.group else ""
        return f"the step asks for {asked} (nodes{of_group}: {has})"

    def _unknown(self, need: Need) -> str:
        """Say why no node has the name or group that a step asks for."""
        if not self.nodes:
            return f"the step asks for {need.amounts} on one node, and there is none"
        of_group = [node for node in self.nodes.values() if need.group in (None, node.names.group)]
        if not of_group:
            groups = ", ".join(sorted({node.names.group for node in self.nodes.values()} - {""}))
            return (
                f"the step asks for worker group {need.group}, and no node is of that group "
                f"(groups: {groups or 'none'})"
            )
        known = sorted({name for node in of_group for name in node.names.own})
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        some = ", ".join(known[:SHOWN]) + more
        asked = f"the step asks in worker group {need.group} for" if need.group else "the step asks for"
        return f"{asked} node {need.node}, and no node is called that (names: {some or 'none'})"


def _placed(need: Need, nodes: list[Node], order: Callable[[Node], Any]) -> list[str]:
    """Choose a node for each worker and take it; empty if not all workers have room."""
    least, most = need.workers
    names: list[str] = []
    while len(names) < most and (fitting := [node for node in nodes if node.has_room(need)]):
        node = min(fitting, key=order)
        node.take(need)
        names.append(node.name)
    # workers beyond a power of two would have nothing to do
    largest = 1 << (len(names).bit_length() - 1) if names else 0
    return names[: max(least, largest)] if len(names) >= least else []


@dataclass(frozen=True)
class FinishedAttempt:
    task: StepTask
    outcome: StepOutcome


class Executor(Protocol):
    address: str  # of the Ray cluster; empty on this machine
    opening: str  # shown before the first `capacity`, which may take seconds

    def check(self) -> None:
        """Raise InputError if steps cannot run there: nothing answers at the address, or it refuses us."""

    def capacity(self) -> Capacity:
        """Return the free room; the first call starts the executor. InputError if that fails."""

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        """Begin the attempt on the nodes that `Capacity.place` chose; return at once."""

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        """Return the attempts finished since the last call; wait up to `timeout` seconds for one."""

    def cancel(self, task: StepTask) -> None:
        """Stop the attempt; `poll` no longer reports it. Nothing happens if it has finished."""

    def shutdown(self) -> None:
        """Stop what is still running and release all resources."""
