vllm serve Qwen/Qwen3-8B --max-model-len 50000 --hf-overrides.max_position_embeddings 50000
