"""Small random models in MarianMT format, written without transformers."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

SIDES = {
    "source": [
        "a small house stands at the river",
        "two children play in the garden",
        "the old man reads a book",
    ],
    "target": [
        "ein kleines haus steht am fluss",
        "zwei kinder spielen im garten",
        "der alte mann liest ein buch",
    ],
}
CONFIG: dict[str, Any] = {
    "model_type": "marian",
    "architectures": ["MarianMTModel"],
    "_name_or_path": "creamtea/tiny-en-de",
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "activation_function": "swish",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "max_position_embeddings": 512,
    "scale_embedding": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "is_encoder_decoder": True,
}
CARD = "---\nlanguage: [en, de]\nlicense: cc-by-4.0\n---\n\n# A random model\n"


def make_folder(folder: Path, size: int = 0, ends: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Write a folder, and return its configuration. `size`: of the vocabulary, at least; `ends`: how much
    likelier than other words the end is, as a logit. `separate_vocabs` gives each side a vocabulary, of which
    the source's has `more_sources`."""
    folder.mkdir(parents=True, exist_ok=True)
    separate, more = changes.pop("separate_vocabs", False), changes.pop("more_sources", 0)
    pieces: dict[str, list[str]] = {}
    for side, lines in SIDES.items():
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=40, model_type="unigram",
            hard_vocab_limit=False, bos_id=-1, minloglevel=2,
        )  # fmt: skip
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces[side] = [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
    sides = pieces if separate else {"source": [*pieces["source"], *pieces["target"]]}
    files = {"source": "vocab.json", "target": "target_vocab.json"}
    sizes = []
    size = max(
        size, *(len(dict.fromkeys(own)) + 1 for own in sides.values())
    )  # transformers has one pad's id
    for side, own in sides.items():
        known = [piece for piece in dict.fromkeys(own) if piece not in ("</s>", "<unk>")]
        wanted = size + more * (side == "source")
        known += [f"x{n}" for n in range(wanted - len(known) - 3)]
        vocabulary = {piece: id_ for id_, piece in enumerate(["</s>", "<unk>", *known, "<pad>"])}
        (folder / files[side]).write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
        sizes.append(len(vocabulary))
    config = {
        **CONFIG, "vocab_size": sizes[0], "decoder_vocab_size": sizes[-1],
        "pad_token_id": sizes[-1] - 1, "decoder_start_token_id": sizes[-1] - 1,
        "bad_words_ids": [[sizes[-1] - 1]], **changes,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    save_file(random_weights(config, ends), folder / "model.safetensors")
    return config


def random_weights(config: dict[str, Any], ends: float = 1.0) -> dict[str, Any]:
    random, d, inner = np.random.default_rng(1), config["d_model"], config["encoder_ffn_dim"]
    usual = 1.2 * d**-0.5  # of wide layers less, or rounding grows from layer to layer

    def draw(*shape: int, scale: float = usual) -> Any:
        return random.normal(0.0, scale, shape).astype(np.float32)

    weights: dict[str, Any] = {}
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for layer in range(config[f"{side}_layers"]):
            start = f"model.{side}.layers.{layer}"
            linear = {f"{own}.{part}_proj": (d, d) for own in attentions for part in ("q", "k", "v", "out")}
            for name, shape in {**linear, "fc1": (inner, d), "fc2": (d, inner)}.items():
                weights[f"{start}.{name}.weight"] = draw(*shape)
                weights[f"{start}.{name}.bias"] = draw(shape[0])
            for name in (*(f"{own}_layer_norm" for own in attentions), "final_layer_norm"):
                signs = random.choice([-1, 1], d).astype(np.float32)  # or a word would follow itself for ever
                weights[f"{start}.{name}.weight"] = signs * (1 + draw(d))
                weights[f"{start}.{name}.bias"] = draw(d)
    sizes = config["vocab_size"], config["decoder_vocab_size"]
    tables = {"model.shared.weight": sizes[0]}
    if not config["share_encoder_decoder_embeddings"]:
        tables = {
            f"model.{side}.embed_tokens.weight": size for side, size in zip(SIDE_NAMES, sizes, strict=True)
        }
        tables |= {} if config["tie_word_embeddings"] else {"lm_head.weight": sizes[1]}
    for name, rows in tables.items():
        weights[name] = draw(rows, d, scale=d**-0.5)
        weights[name][-1] = 0.0  # of the pad, as in Marian's models
    bias = draw(1, sizes[1])
    bias[0, config["eos_token_id"]] += ends
    bias[0, -1] = 0.0
    return {**weights, "final_logits_bias": bias}


SIDE_NAMES = ("encoder", "decoder")
