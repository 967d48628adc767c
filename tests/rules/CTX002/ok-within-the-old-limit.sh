vllm serve Qwen/Qwen3-8B --max-model-len 40960 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}'
