# What the removed flag asked for does not happen, so the length is too long as well.
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --rope-scaling '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}'  # expect: FLG001, CTX001
