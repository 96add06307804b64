"""The areas of an artefact store: the folders below its root, and what keeps the files in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kept(Enum):
    """How long a file is needed."""

    REFERENCED = auto()  # while the database has its digest
    UNFINISHED = auto()  # until its step has succeeded
    STEP = auto()  # as long as its step is in the database
    ALWAYS = auto()
    WRITING = auto()  # while it is young: no database knows it


@dataclass(frozen=True)
class Area:
    """`files`: what `creamtea gc` calls them; `part`: under what `creamtea du` counts those of a step."""

    files: str
    kept: Kept
    part: str = "other"


UPLOADS = "uploads"  # not a folder: uploads in parts that have not ended

AREAS = {
    # objects/ab/<sha256>: an output file of a step, or a file beside a source; never changed
    "objects": Area("outputs", Kept.REFERENCED, "outputs"),
    # checkpoints/<key>/<name>: what a running step resumes from
    "checkpoints": Area("checkpoints", Kept.UNFINISHED, "checkpoints"),
    # progress/<key>.json: how far a running step is
    "progress": Area("progress", Kept.UNFINISHED, "progress"),
    # room/<key>.json: with how many workers it could go on
    "room": Area("offers of more workers", Kept.UNFINISHED, "progress"),
    # live/<key>.json: what a running step shows of itself
    "live": Area("curves and examples of trainings", Kept.STEP, "progress"),
    # logs/<key>/: the logs of its attempts (`store.logs`)
    "logs": Area("logs", Kept.STEP, "logs"),
    # controller/waiting.json: why the controller does not start steps now
    "controller": Area("what a controller waits for", Kept.ALWAYS),
    # damaged/<sha256>: a damaged object, set aside for who wants to look at it
    "damaged": Area("damaged files", Kept.WRITING),
    # tmp/: what is being written
    "tmp": Area("temporary files", Kept.WRITING),
    UPLOADS: Area("unfinished uploads", Kept.WRITING),
}
