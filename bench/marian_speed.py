"""Time a MarianMT model in creamtea, CTranslate2 and transformers: one CPU thread, batch 1, alternating.

    .venv/bin/python bench/marian_speed.py FOLDER SENTENCES --transformers .venv-comet/bin/python

FOLDER holds the model, SENTENCES has one per line. All three translate each sentence from subword ids to
subword ids, in an order drawn anew. A ratio is that of a percentile over the sentences to CTranslate2's in
the same repetition; printed are its median and its range over repetitions. transformers runs in a process of
its own. `--clock cpu` counts the seconds that a process computes, for machines with other work.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PERCENTILES = (50, 90)
Timed = Callable[[list[int], list[int]], tuple[float, list[int]]]  # our and their ids: seconds, our ids


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def serve(folder: str, beam: int, clock: Callable[[], float]) -> None:
    """Translate ids that come as lines of JSON, in the interpreter that has transformers."""
    import torch
    from transformers import MarianMTModel

    torch.set_num_threads(1)
    model = MarianMTModel.from_pretrained(folder).eval()
    pad, eos = model.config.pad_token_id, model.config.eos_token_id
    with torch.inference_mode():
        for line in sys.stdin:
            source = torch.tensor([json.loads(line)])
            began = clock()
            found = model.generate(
                source, num_beams=beam, do_sample=False, bad_words_ids=[[pad]], forced_eos_token_id=None,
                max_new_tokens=2 * (source.shape[1] - 1) + 10,
            )[0].tolist()  # fmt: skip
            seconds = clock() - began
            print(json.dumps([seconds, [id_ for id_ in found if id_ not in (pad, eos)]]), flush=True)


def own_entrants(
    folder: Path, beam: int, precisions: list[str], clock: Callable[[], float]
) -> tuple[dict[str, Timed], Any, list[int]]:
    """Return creamtea and CTranslate2 by name, the subwords, and the file's ids of ours."""
    from creamtea.marian import order, read_folder
    from creamtea.methods.searches import Beam, Greedy
    from creamtea_workers.export import save_ctranslate2
    from creamtea_workers.models.inference import prepare
    from creamtea_workers.models.marian import load_marian
    from creamtea_workers.objectives import build_objective
    from creamtea_workers.runtime import prepare_torch
    from creamtea_workers.search import build_search
    from creamtea_workers.search.base import length_limit
    from creamtea_workers.search.shipped import COMPUTE_TYPES, Library, token_names
    from creamtea_workers.search.translator import Translator
    from creamtea_workers.selection.tables import FullSelector

    prepare_torch(1)
    marian = read_folder(folder)
    wide = Beam(kind="beam", width=beam) if beam > 1 else None
    entrants: dict[str, Timed] = {}
    for precision in precisions:
        model, config, subwords = load_marian(marian)
        names = token_names(subwords)
        with TemporaryDirectory() as place:
            save_ctranslate2(model, names, Path(place), None if precision == "fp32" else precision)
            library = Library(Path(place), names, 1, COMPUTE_TYPES[precision])
        objective = build_objective(config.objective)
        ours = Translator(
            prepare(model, precision), objective, FullSelector(), build_search(wide or Greedy())
        )

        def creamtea(source: list[int], _: list[int], ours: Translator = ours) -> tuple[float, list[int]]:
            began = clock()
            (found,) = ours.translate([source], with_scores=False)
            return clock() - began, found.hypothesis.tokens

        def peer(source: list[int], _: list[int], library: Library = library) -> tuple[float, list[int]]:
            began = clock()
            ((best,),) = library.translate([source], [length_limit(2.0, len(source))], wide)
            return clock() - began, best.tokens

        entrants |= {f"CTranslate2 {precision}": peer, f"creamtea {precision}": creamtea}
    return entrants, subwords, order(marian.target, marian.start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sentences", type=Path, nargs="?")
    parser.add_argument("--transformers", help="Python that has transformers")
    parser.add_argument("--count", type=int, default=50, help="sentences")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    clock = CLOCKS[options.clock]
    if options.serve:
        serve(str(options.folder), options.beam, clock)
        return
    import numpy as np

    entrants, subwords, theirs = own_entrants(options.folder, options.beam, options.precisions, clock)
    lines = options.sentences.read_text(encoding="utf-8").splitlines()
    sources = subwords.encode_lines(lines[:: max(1, len(lines) // options.count)][: options.count])
    if options.transformers:
        command = [
            options.transformers,
            __file__,
            str(options.folder),
            "--serve",
            "--beam",
            str(options.beam),
        ]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ours = {id_: own for own, id_ in reversed(list(enumerate(theirs)))}

        def transformers(_: list[int], source: list[int]) -> tuple[float, list[int]]:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(f"{json.dumps(source)}\n")
            server.stdin.flush()
            seconds, found = json.loads(server.stdout.readline())
            return seconds, [ours[id_] for id_ in found]

        entrants["transformers fp32"] = transformers
    seconds = {name: np.zeros((options.repetitions, len(sources))) for name in entrants}
    outputs: dict[str, list[list[int]]] = {name: [[] for _ in sources] for name in entrants}
    turns, names = random.Random(1), list(entrants)
    for repetition in range(-1, options.repetitions):  # the first is warm-up
        for n, source in enumerate(sources):
            turns.shuffle(names)
            for name in names:
                took, outputs[name][n] = entrants[name](source, [*(theirs[id_] for id_ in source), theirs[3]])
                seconds[name][max(repetition, 0), n] = took
    print("program | p50 ms | to CTranslate2 fp32: p50 | p90 | same outputs")
    for name, times in seconds.items():
        row = [f"{1000 * np.median(np.percentile(times, 50, axis=1)):.1f}"]
        for percent in PERCENTILES:
            ratio = np.percentile(times, percent, axis=1)
            ratio /= np.percentile(seconds["CTranslate2 fp32"], percent, axis=1)
            row.append(f"{np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}]")
        same = sum(a == b for a, b in zip(outputs[name], outputs["CTranslate2 fp32"], strict=True))
        print(" | ".join([name, *row, f"{same}/{len(sources)}"]))


if __name__ == "__main__":
    main()
