"""Size and recall of a vocabulary that a whole batch shares, as in toolkits that take a batch's union.

    creamtea translate STUDY SYSTEM --selected --json < SOURCE > LINES
    python bench/batch_unions.py LINES REFERENCE target.spm [--batches 1 16 64]

LINES are of a system with a selection. Batches are of sentences of similar length (in characters, the
shortest first). Recall is that of reports: the share of the references' unique subwords that are selected.
With a batch of 1 both numbers are the report's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sentencepiece import SentencePieceProcessor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lines", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("subwords", type=Path, help="SentencePiece model of the target side")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64], help="sentences per batch")
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.lines.read_text(encoding="utf-8").split("\n") if line]
    references = options.reference.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    processor = SentencePieceProcessor(model_file=str(options.subwords))
    wanted = [set(processor.encode(reference, out_type=str)) for reference in references]
    order = sorted(range(len(lines)), key=lambda at: len(lines[at]["source"]))
    print("| batch | selected | recall, % |\n| --: | --: | --: |")
    for size in options.batches:
        sizes, hits = [], 0
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            union = {piece for at in batch for piece in lines[at]["selected"]}
            sizes += [len(union)] * len(batch)
            hits += sum(len(wanted[at] & union) for at in batch)
        recall = 100 * hits / sum(map(len, wanted))
        print(f"| {size} | {sum(sizes) / len(sizes):,.0f} | {recall:.1f} |")


if __name__ == "__main__":
    main()
