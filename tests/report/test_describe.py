"""A system in a few words: what differs from the default is named, the default is not."""

from __future__ import annotations

from typing import Any

import pytest

from creamtea.report.configuration import describe_system
from creamtea.study.spec import Study


@pytest.mark.parametrize(
    ("variant", "system", "words"),
    [
        ({}, {}, "softmax, greedy"),
        ({"objective": {"kind": "softmax", "label_smoothing": 0.1}}, {}, "softmax ε=0.1, greedy"),
        (
            {"objective": {"kind": "softmax", "label_smoothing": 0.1, "smoothing": "unigram"}},
            {},
            "softmax ε=0.1 unigram, greedy",
        ),
        ({"objective": {"kind": "softmax", "smoothing": "unigram"}}, {}, "softmax, greedy"),
        (
            {"objective": {"kind": "scones", "alpha": 0.2, "label_smoothing": 0.1}},
            {},
            "SCONES α=0.2 λ=0.1, greedy",
        ),
        ({"objective": {"kind": "entmax", "alpha": 1.25}}, {}, "1.25-entmax, greedy"),
        (
            {"objective": {"kind": "entmax", "label_smoothing": 0.01, "smoothing": "unigram"}},
            {},
            "1.5-entmax ε=0.01 unigram, greedy",
        ),
        ({"architecture": {"preset": "base"}}, {}, "softmax, base, greedy"),
        ({"architecture": {"preset": "deep", "dropout": 0.3}}, {}, "softmax, deep (20+2 SSRU), greedy"),
        ({"architecture": {"kind": "ssru", "width": 256}}, {}, "softmax, 3+3 SSRU, width 256, greedy"),
        ({"start_from": "root"}, {}, "softmax, adapted from root, greedy"),
        ({"nvs": {}}, {"selection": {"kind": "nvs"}}, "softmax, NVS λ=0.9, greedy"),
        (
            {"nvs": {}},
            {"selection": {"kind": "nvs", "threshold": 0.99, "context": "word"}},
            "softmax, NVS λ=0.99 word by word, greedy",
        ),
        ({}, {"selection": {"kind": "lexicon", "k": 20}}, "softmax, lexicon k=20, greedy"),
        (
            {},
            {"search": {"kind": "beam", "width": 5}, "precision": "int8"},
            "softmax, beam 5 / length^1, int8",
        ),
        (
            {},
            {"search": {"kind": "beam", "length_normalization": 0.6}, "precision": "fp16"},
            "softmax, beam 4 / length^0.6, fp16",
        ),
        ({}, {"search": {"kind": "exact"}}, "softmax, exact"),
        ({}, {"search": {"kind": "exact", "depth": 3}}, "softmax, exact up to 3 subwords"),
        ({}, {"search": {"kind": "sample", "top_k": 10}}, "softmax, sample top-10"),
        (
            {},
            {"search": {"kind": "mbr", "samples": 16, "utility": "bleu", "temperature": 0.5}},
            "softmax, MBR of 16 samples T=0.5 by BLEU",
        ),
    ],
)
def test_systems_in_words(
    variant: dict[str, Any], system: dict[str, Any], words: str, spec: dict[str, Any]
) -> None:
    plain = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec |= {
        "variants": {"root": plain, "one": {**plain, **variant}},
        "systems": {"one": {"variant": "one", **system}},
        "baseline": "one",
        "latency": None,
    }
    assert describe_system(Study.model_validate(spec), "one") == words


def test_an_architecture_that_all_variants_have_is_not_repeated(spec: dict[str, Any]) -> None:
    for variant in spec["variants"].values():
        variant["architecture"] = {"preset": "base"}
    assert describe_system(Study.model_validate(spec), "softmax-greedy") == "softmax, greedy"
