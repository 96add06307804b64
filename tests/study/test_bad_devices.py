"""Precisions, workers and resources that do not fit the device of a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.study.loader import load_study

Write = Callable[..., Path]

GREEDY = "  greedy: {variant: softmax}"
BASELINE = "baseline: greedy"
LATENCY = "latency: {test_set: test}"
EMPTY = "analyses:\n  empty: {kind: empty_string, test_set: test"


@pytest.mark.parametrize(
    "precision, blocks, place",
    [
        ("int8", "resources: {decode: {gpus: 1}}", "decode"),
        ("int8", f"{LATENCY}\nresources: {{latency: {{gpus: 1}}}}", "latency"),
        ("int8", f"{EMPTY}}}\nresources: {{empty_string: {{gpus: 1}}}}", "empty_string"),
        ("int8", f"{EMPTY}, systems: [greedy]}}\nresources: {{empty_string: {{gpus: 1}}}}", "empty_string"),
        (
            "int8",
            f"{LATENCY}\nresources: {{decode: {{gpus: 1}}, latency: {{gpus: 1}}}}",
            "decode and .*latency",
        ),
        ("fp16", f"{LATENCY}\nresources: {{decode: {{gpus: 1}}}}", "latency"),
    ],
)
def test_a_precision_that_a_step_has_no_device_for(
    write: Write, precision: str, blocks: str, place: str
) -> None:
    path = write(
        (GREEDY, f"  greedy: {{variant: softmax, precision: {precision}}}"),
        (BASELINE, f"{BASELINE}\n{blocks}"),
    )
    with pytest.raises(
        InputError, match=rf"systems\.greedy\.precision: found {precision} on .* resources.{place}"
    ):
        load_study(path)


@pytest.mark.parametrize(
    "blocks",
    [
        "latency: {test_set: test, systems: [scones], baselines: [scones]}\nresources: {latency: {gpus: 1}}",
        f"{EMPTY}, systems: [scones]}}\nresources: {{empty_string: {{gpus: 1}}}}",
        "resources: {train: {gpus: 1}, latency: {gpus: 1}}",
    ],
)
def test_a_gpu_for_steps_that_do_not_run_the_system(write: Write, blocks: str) -> None:
    load_study(
        write((GREEDY, "  greedy: {variant: softmax, precision: int8}"), (BASELINE, f"{BASELINE}\n{blocks}"))
    )


def test_the_device_of_a_step_is_the_one_that_its_variant_asks_for(write: Write) -> None:
    own = "variants.softmax.resources={decode: {gpus: 1}}"
    load_study(write((GREEDY, "  greedy: {variant: softmax, precision: fp16}")), [own])
    path = write((GREEDY, "  greedy: {variant: softmax, precision: int8}"))
    with pytest.raises(InputError, match=r"int8 on a GPU, .* in variants\.softmax\.resources\.decode"):
        load_study(path, [own])


def test_tf32_is_for_gpus(write: Write) -> None:
    tf32 = "variants.softmax.training.autocast=tf32"
    with pytest.raises(
        InputError,
        match=r"softmax\.training\.autocast: found tf32 on a CPU, allowed bf16 or none, or `gpus: 1`",
    ):
        load_study(write(), [tf32])
    load_study(write(), [tf32, "resources={train: {gpus: 1}}"])
    load_study(write(), [tf32, "variants.softmax.resources={train: {gpus: 0.1}}"])


def test_workers_of_a_training_have_whole_gpus(write: Write) -> None:
    train = "{train: {gpus: 0.5, workers: [1, 4]}}"
    accumulate = [f"variants.{name}.training.accumulate=4" for name in ("softmax", "scones")]
    for place in ("resources", "variants.softmax.resources"):
        with pytest.raises(
            InputError, match=rf"{place}\.train\.gpus: found 0\.5 for each of several workers, .*\n1 mistake"
        ):
            load_study(write(), [f"{place}={train}", *accumulate])
    load_study(write(), ["resources={train: {gpus: 2, workers: 4}}", *accumulate])


def test_recall_runs_a_model_in_its_precision_where_the_selection_has_one(write: Write) -> None:
    old, new = (
        "{variant: softmax, selection: {kind: nvs}",
        "{variant: softmax, precision: fp16, selection: {kind: nvs}",
    )
    with pytest.raises(InputError, match=r"fp16 on a CPU, .*`gpus: 1` in resources\.recall"):
        load_study(write((old, new)), ["resources={decode: {gpus: 1}}"])
    load_study(write((old, new)), ["resources={decode: {gpus: 1}, recall: {gpus: 1}}"])
    lexicon = (old, "{variant: softmax, precision: fp16, selection: {kind: lexicon}")
    load_study(write(lexicon), ["resources={decode: {gpus: 1}}"])


@pytest.mark.parametrize("kind", ["corpus", "subwords", "encode", "latency"])
def test_resources_of_a_variant_for_steps_that_variants_share(write: Write, kind: str) -> None:
    with pytest.raises(
        InputError,
        match=rf"variants\.softmax\.resources\.{kind}: found a {kind} step, allowed it in the study's own",
    ):
        load_study(write(), [f"variants.softmax.resources={{{kind}: {{cpus: 4}}}}"])
    load_study(write(), [f"resources={{{kind}: {{cpus: 4}}}}"])


def test_resources_of_a_variant_that_are_not_a_block(write: Write) -> None:
    with pytest.raises(InputError, match=r"variants\.softmax\.resources\.train: found 2, allowed a block"):
        load_study(write(), ["variants.softmax.resources={train: 2}"])
