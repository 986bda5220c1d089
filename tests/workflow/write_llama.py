"""Write a small Llama with random weights as Hugging Face does: safetensors, config, tokenizer.

Run with the Python of the converter's environment: `write_llama.py FOLDER TEXT`.
"""

import sys
from pathlib import Path

import sentencepiece
import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 320


def main() -> None:
    folder, text = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True)
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=VOCABULARY,
        model_type="bpe",
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "tokenizer.vocab").unlink()
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main()
