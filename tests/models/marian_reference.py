"""What transformers makes of a folder in MarianMT format; COMET's environment has transformers.

python marian_reference.py FOLDER…

writes the model as transformers saves it into FOLDER/saved, and what comes of the sentences of
FOLDER/lines.txt into FOLDER/saved/reference.json. Before that it trains the model on FOLDER/pairs.json, if
there is such a file.
"""

import atexit
import gc
import json
import sys
from pathlib import Path

import torch
from transformers import MarianMTModel, MarianTokenizer


def train(model: MarianMTModel, tokenizer: MarianTokenizer, pairs: list[list[str]]) -> None:
    torch.manual_seed(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    sources = tokenizer([source for source, _ in pairs], text_target=[target for _, target in pairs])
    ids, labels = sources["input_ids"], sources["labels"]
    for update in range(200):
        rows = [n % len(pairs) for n in range(16 * update, 16 * update + 16)]
        batch = tokenizer.pad({"input_ids": [ids[n] for n in rows]}, return_tensors="pt")
        longest = max(len(labels[n]) for n in rows)
        wanted = torch.tensor([labels[n] + [-100] * (longest - len(labels[n])) for n in rows])
        model(**batch, labels=wanted).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


@torch.no_grad()
def refer(folder: str) -> None:
    model = MarianMTModel.from_pretrained(folder)
    config = json.loads(Path(folder, "config.json").read_text())
    separate = Path(folder, "target_vocab.json").exists()
    tokenizer = MarianTokenizer.from_pretrained(
        folder,
        separate_vocabs=separate,
        **({"target_vocab_file": f"{folder}/target_vocab.json"} if separate else {}),
    )
    if Path(folder, "pairs.json").exists():
        with torch.enable_grad():
            train(model.train(), tokenizer, json.loads(Path(folder, "pairs.json").read_text()))
    model.eval()
    pad, rows = config["pad_token_id"], []
    for line in Path(folder, "lines.txt").read_text(encoding="utf-8").splitlines():
        source = tokenizer(line, return_tensors="pt").input_ids
        limit = 2 * (source.shape[1] - 1) + 10
        common = {
            "max_new_tokens": limit, "forced_eos_token_id": None, "bad_words_ids": [[pad]],
            "early_stopping": False, "do_sample": False,
        }  # fmt: skip
        greedy = model.generate(source, num_beams=1, **common)
        beam = model.generate(
            source,
            num_beams=4,
            length_penalty=1.0,
            output_scores=True,
            return_dict_in_generate=True,
            **common,
        )
        logits = model(input_ids=source, decoder_input_ids=greedy[:, :-1]).logits
        rows.append(
            {
                "source": source[0].tolist(),
                "greedy": greedy[0].tolist(),
                "beam": beam.sequences[0].tolist(),
                "beam_score": float(beam.sequences_scores[0]),
                "text": tokenizer.decode(greedy[0], skip_special_tokens=True),
                "logits": logits[0].tolist() if logits.shape[2] < 1000 else logits[0, :, ::97].tolist(),
            }
        )
    model.save_pretrained(f"{folder}/saved")
    tokenizer.save_pretrained(f"{folder}/saved")
    Path(folder, "saved", "reference.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    atexit.register(gc.freeze)  # Python would search all that is imported for garbage
    for folder in sys.argv[1:]:
        refer(folder)
