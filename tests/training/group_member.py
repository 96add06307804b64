"""The processes of groups of several sizes, which train and decode together.

`group_member.py FOLDER`; the inputs of the decoding lie in FOLDER.
"""

import os
import sys
from multiprocessing import get_context
from pathlib import Path

import step_files
import torch
from small_trainings import parameters, reversals, trainer
from step_context import Context, FolderCheckpoints
from torch import distributed

from creamtea.steps.systems import DECODE
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.training import group
from creamtea_workers.training.group import current_group

SIZES = (2, 3, 4)
UPDATES = {"accumulate": 6, "batch_tokens": 40, "learning_rate": 0.003, "warmup": 5, "max_epochs": 2}
TRAINING = {**UPDATES, "checkpoint_every": 3, "average": 2}


def train(folder: Path) -> dict[str, torch.Tensor]:
    """The weights at the end; with dropout, bf16 and an NVS head."""
    params = parameters(TRAINING, {"dropout": 0.2}, nvs={"positive_weight": 10.0})
    made = trainer(params, reversals(70, 6, seed=1), folder, group=current_group())
    assert any(len(made.plan_of(epoch)) % 6 for epoch in (0, 1))  # an update of fewer batches
    return made.run().model.state_dict()


def terms(rank: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(shape, generator=generator) for shape in ((3, 5), (1,), (7,))]


def make_inputs(folder: Path) -> None:
    """Sentences of several lengths, and a model."""
    subwords = step_files.subwords_folder(folder)
    words = ["the", "cat", "sat", "on", "the", "mat", "and", "she", "took", "a", "cake", "to", "the", "park"]
    segments = [{"source": " ".join(words[: 1 + n % 12]), "reference": "x"} for n in range(30)]
    step_files.segments_folder(folder, segments)
    step_files.model_folder(folder, step_files.vocabulary_size(subwords))


def decode(folder: Path, output: Path, checkpoints: Path) -> None:
    search = {"search": {"kind": "beam", "width": 3}, "batch_size": 4}
    params = {"selection": {"kind": "full"}, "precision": "fp32", **search}
    inputs = {role: [folder / role] for role in ("test_set", "subwords", "train")}
    Context(DECODE, params, inputs, output, FolderCheckpoints(checkpoints)).run()


def take_part(rank: int, folder: Path) -> None:
    """As one process of each group."""
    prepare_torch(1)
    group.PART = 1000  # so that a gradient has several
    for size in SIZES:
        if rank < size:
            store = f"file://{folder}/store-{size}"
            distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
            added = current_group().add(terms(rank))
            torch.save(added, folder / f"added-{size}-{rank}.pt")
            # of three and four workers each writes some of the parts of a checkpoint
            os.environ["CREAMTEA_CHECKPOINT_PART_MB"] = "0.02" if size > 2 else "1000"
            torch.save(train(folder / f"checkpoints-{size}"), folder / f"weights-{size}-{rank}.pt")
            decode(folder, folder / f"decoded-{size}-{rank}", folder / f"translations-{size}")
            distributed.destroy_process_group()


if __name__ == "__main__":
    fork = get_context("fork")  # torch is loaded, and has not computed anything
    members = [
        fork.Process(target=take_part, args=(rank, Path(sys.argv[1])), daemon=True)
        for rank in range(max(SIZES))
    ]
    for member in members:
        member.start()
    for member in members:
        member.join()
    sys.exit(any(member.exitcode for member in members))
