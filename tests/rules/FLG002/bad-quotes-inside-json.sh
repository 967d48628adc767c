# The override is taken for a text: nothing is overridden, and the length stays too long.
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides "'{\"max_position_embeddings\": 131072}'"  # expect: FLG002, CTX001
