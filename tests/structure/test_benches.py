"""What benchmarks put in place of the engine has all that a step may ask for."""

from __future__ import annotations

from large_corpus import Context

from creamtea.contract.step import StepContext


def test_the_context_of_the_large_corpus_is_whole() -> None:
    asked = {name for name in vars(StepContext) if not name.startswith("_")} | set(
        StepContext.__annotations__
    )
    given = set(dir(Context)) | set(Context.__annotations__)
    assert "show" in asked
    assert asked <= given
