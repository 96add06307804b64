"""From a study to its steps: content-addressed, in an order in which they can run.

The plan has two lists. `steps` are what runs: each key once, inputs before what needs them. `nodes` are
the places of the study that a step fills: "decode/softmax-beam4/1/test" with the labels by which the
report finds it. Two systems that differ in name only are two nodes of one step.

labels by kind: corpus {corpus}; test_set {test_set}; overlap {corpus, test_sets: [in the order of the
step's `test_sets`]}; subwords, align and ibm3 {corpus, subwords}; import_model {model}; train
{variant, seed, corpus, subwords}; decode and recall {system, variant, seed, test_set}, but of an imported
model {system, test_set}; outputs {system, test_set}; score what its decode or outputs has and {metric}, with
{better} if that is not "higher"; compare
{system, baseline, variant if it has one, test_set, metric}; pairs {systems: [in the order of the step's
`outputs`], test_set, metric};
latency {test_set, systems: [in the order of the step's `systems`], seeds: [of the model of each], baselines};
analyses {analysis, variant, seed, test_set}, empty_string also {system}; differences
{analysis, variant, test_set}, of an analysis of systems also {system}, and {baseline} where it is compared
with another variant or system. A decode for an analysis has
{analysis} and no {system}; a part of a test set {first_of} and no {test_set}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from creamtea.document.mistakes import Mistake, StudyErrors
from creamtea.errors import InputError
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.systems import StudyPlanner
from creamtea.study.plan.texts import Plan, PlannedNode, PlannedStep
from creamtea.study.spec import Study

__all__ = ["Plan", "PlannedNode", "PlannedStep", "plan"]

ErrorMaker = Callable[[Sequence[Mistake]], InputError]


def plan(
    study: Study,
    data: Path | None,
    errors: ErrorMaker | None = None,
    confined: bool = False,
    names: Mapping[str, str] | None = None,
) -> Plan:
    """Return the steps of a study whose files lie under `data`.

    Every file of the study is read. All mistakes in them are raised together, as the error that `errors`
    makes of them: pass `LoadedStudy.errors` to name the lines of the study. With `data` None no file is read,
    and steps over files have other keys than in a run.

    `confined`: paths that lead out of `data` are mistakes. `names`: what mistakes call files instead of their
    paths in the study.
    """
    planner = StudyPlanner(study, DataFiles(data, confined, names=names or {}))
    for name, variant in study.variants.items():
        for seed in variant.seeds:
            planner.train(name, seed)
    for test_set in study.test_sets:
        planner.test_set(test_set)
    planner.overlaps()
    for name in study.systems:
        for test_set in study.test_sets_of(name):
            planner.translate(name, test_set)
    for name in study.systems:
        for baseline in study.comparisons(name):
            for test_set in study.test_sets_of(name):
                planner.compare(name, baseline, test_set)
    for test_set in study.test_sets:
        planner.pairs(test_set)
        planner.agreement(test_set)
    for name, analysis in study.analyses.items():
        analysis.plan(name, planner)
    if study.latency:
        planner.latency(study.latency)
    if mistakes := planner.files.mistakes:
        raise errors(mistakes) if errors else StudyErrors([m.line() for m in mistakes], study.name)
    return planner.result
