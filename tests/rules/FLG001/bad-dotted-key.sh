# Keys with dots came in 0.9.0.
# vllm: 0.8.5
vllm serve Qwen/Qwen3-8B --hf-overrides.max_position_embeddings 131072  # expect: FLG001
