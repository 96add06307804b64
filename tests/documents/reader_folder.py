"""What a reader of the documents has on the machine: little text under the documents' names, and the study
`demo`, run to its end."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import yaml
from fenced import ROOT

STUDIES = ROOT / "studies"
TATOEBA = STUDIES / "tatoeba"
LINES = {"train": 500, "dev": 20, "test": 20}
SMALL = {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 2, "feed_forward": 64}
OTHERS = {  # files of texts: Tatoeba's language and the first of its training lines that are in them
    **{
        f"{name}.{code}": (code, start)
        for name, start in (("train", 0), ("dev", 500), ("test", 800))
        for code in ("en", "de")
    },
    "sentences.en": ("en", 500),
    "held-out.en": ("en", 500),
    "thousand.en": ("en", 500),
    "a.de": ("de", 800),
    # outputs of other systems; what they say is of no matter here
    "b.de": ("de", 600),
    "gpt.de": ("de", 650),
    "nllb.de": ("de", 700),
    "ours.de": ("de", 550),
    "gpt.out.de": ("de", 650),
    "ours.out.de": ("de", 550),
    "s.txt": ("en", 800),
    "r.txt": ("de", 800),
    "A.txt": ("de", 650),
    "B.txt": ("de", 550),
    "a.txt": ("en", 0),
    "b.txt": ("de", 0),
}
WMT26 = "WMT26_###_news_###_eng_Latn_###_deu_Latn_###_tea"


def _json_lines(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


WRITTEN = {
    "instructions.md": "Read both sentences *twice*.\n",
    "people.txt": "anna\nben\n",
    "about-you.txt": "Which language did you grow up with? | German | English | another\n",
    "consent.txt": "My answers may be published without my name.\n",
    "test.docs": "".join(f"letter-{line // 5}\n" for line in range(LINES["test"])),
    "metrics-token": "0" * 64 + "\n",
    "directions.txt": "en-de\tanna\nen-nl\tben\n",
    "wmt26-genmt.jsonl": _json_lines(
        {
            "doc_id": WMT26,
            "domain": "news",
            "src_lang": "eng_Latn",
            "tgt_lang": "deu_Latn",
            "src_text": "<p>Tea.</p>\n<p>Jam.</p>",
            "refs": {},
        }
    ),
    **{
        f"wmt26-systems/{name}.jsonl": _json_lines({"doc_id": WMT26, "hypothesis": text})
        for name, text in (("A", "<p>Tee.</p>\n<p>Marmelade.</p>"), ("B", "<p>Tee</p>\n<p>Konfitüre</p>"))
    },
}
# an evaluation of two directions, whatever their texts say
WMT = {
    f"wmt/{path}": source
    for pair in ("en-de", "en-nl")
    for path, source in {
        f"sources/{pair}.txt": ("en", 800),
        f"references/{pair}.refA.txt": ("de", 800),
        **{
            f"system-outputs/{pair}/{name}.txt": ("de", start)
            for name, start in (("A", 500), ("B", 550), ("C", 599))
        },
    }.items()
}


def make_files(folder: Path) -> None:
    """All but what creamtea itself writes."""
    shutil.copytree(STUDIES, folder / "studies", ignore=shutil.ignore_patterns("tatoeba"))
    tatoeba = folder / "studies" / "tatoeba"
    tatoeba.mkdir()
    with (TATOEBA / "en-de.tsv").open(encoding="utf-8") as pairs:
        table = "".join(itertools.islice(pairs, LINES["train"]))
    for place in (tatoeba, folder):
        (place / "en-de.tsv").write_text(table, encoding="utf-8")
    for name, (code, start) in {**OTHERS, **WMT}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _copy_lines(code, folder / name, start)
    for name, text in WRITTEN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    study = yaml.safe_load((STUDIES / "demo.yaml").read_text(encoding="utf-8"))
    (folder / "studies" / "demo.yaml").write_text(_dumped(shrunk(study)), encoding="utf-8")
    copied = {key: value for key, value in study.items() if key != "campaigns"} | {"name": "my-study"}
    (folder / "my-study.yaml").write_text(_dumped(copied), encoding="utf-8")
    installed = folder / ".venv" / "share" / "creamtea"
    installed.mkdir(parents=True)
    (installed / "studies").symlink_to("../../../studies")
    (folder / "corpora").symlink_to("studies")


def shrunk(study: dict[str, Any]) -> dict[str, Any]:
    """Of the same parts with the same names, and trained in a second."""
    study["corpora"]["everyday"] |= {"train": LINES["train"], "dev": LINES["dev"]}
    study["test_sets"]["test"]["lines"] = LINES["test"]
    for subwords in study["subwords"].values():
        subwords["vocabulary"] = 300
    for variant in study["variants"].values():
        variant["architecture"] = SMALL
        variant["training"] |= {
            "batch_tokens": 256,
            "warmup": 20,
            "learning_rate": 0.01,
            "max_updates": 60,
            "average": 1,
        }
    study["recall"] = {"k": [1, 50], "thresholds": [0.9, 0.5]}
    study["latency"] |= {"sentences": 2, "repetitions": 3, "warmup": 1}
    return study


def _dumped(study: dict[str, Any]) -> str:
    return yaml.safe_dump(json.loads(json.dumps(study)), sort_keys=False, allow_unicode=True)  # no anchors


def _copy_lines(code: str, target: Path, start: int) -> None:
    """Copy lines of Tatoeba: the first ones as a training text, later ones as a test set."""
    column = ("en", "de").index(code)
    with (TATOEBA / "en-de.tsv").open(encoding="utf-8") as pairs:
        part = itertools.islice(pairs, start, start + LINES["test" if start else "train"])
        texts = (pair.rstrip("\n").split("\t")[column] for pair in part)
        target.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
