# Qwen3-VL reads its length from text_config.
vllm serve Qwen/Qwen3-VL-8B-Instruct --max-model-len 524288 --hf-overrides '{"max_position_embeddings": 524288}'  # expect: CTX001
