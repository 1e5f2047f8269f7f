"""A language model of a few thousand numbers and a tokenizer of words, written as the hub's are. Needs transformers:

python tiny_model.py FOLDER
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

WORDS = ["<pad>", "<end>", "<new>", "one", "two", "three", "four", "five", "six", "seven"]


def write(folder: Path) -> None:
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    model = tokenizers.models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<new>")
    plain = tokenizers.Tokenizer(model)
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    spelled = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>", unk_token="<new>"
    )
    spelled.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=16,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=False,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
