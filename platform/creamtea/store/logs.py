"""The logs of attempts in the artefact store: logs/<step key>/<fence>-<worker>.log, UTF-8 text.

A claim raises a step's fence, so that the last attempt has the largest. Worker 0 is the first of a group, or
the only one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from creamtea.store.artefacts import ArtefactStore

LIMIT = 1 << 20  # bytes of an attempt's log that are kept: its beginning and its end
HEAD = 1 << 16  # of them its beginning

_NAME = re.compile(r"(\d+)-(\d+)\.log$")


@dataclass(frozen=True, order=True)
class LogName:
    fence: int
    worker: int


def write_log(store: ArtefactStore, key: str, name: LogName, content: bytes) -> None:
    """Replace the attempt's log."""
    path = _path(store, key, name)
    with store.failures(path):
        store.write(path, lambda place: store.fs.pipe_file(place, content), durable=False)


def list_logs(store: ArtefactStore, key: str) -> list[LogName]:
    """The logs of a step's attempts, in their order."""
    folder = store.path_of("logs", key)
    with store.failures(folder), suppress(FileNotFoundError):
        matches = map(_NAME.search, store.fs.ls(folder, detail=False))
        return sorted(LogName(int(match[1]), int(match[2])) for match in matches if match)
    return []


def read_log(store: ArtefactStore, key: str, name: LogName) -> str:
    """The attempt's log as far as it has been written; empty if there is none."""
    path = _path(store, key, name)
    with store.failures(path), suppress(FileNotFoundError):
        return bytes(store.fs.cat_file(path)).decode(errors="replace")
    return ""


def shortened(content: bytes, length: int) -> bytes:
    """A log of `length` bytes as it is kept; `content` is all of it, or its first HEAD and last LIMIT - HEAD
    bytes."""
    if length <= LIMIT:
        return content
    gap = f"\n… {length - LIMIT:,} bytes are left out here …\n".encode()
    return content[:HEAD] + gap + content[HEAD:]


def news(shown: str, content: str) -> str:
    """What of a log's new content has not been shown, when `shown` was its content before.

    Where the beginning of both differs, a part in the middle has been left out: then what follows the last
    shown lines counts.
    """
    if content.startswith(shown):
        return content[len(shown) :]
    _, found, after = content.rpartition(shown[-500:])
    return after if found else content


def _path(store: ArtefactStore, key: str, name: LogName) -> str:
    return store.path_of("logs", key, f"{name.fence:06d}-{name.worker}.log")
