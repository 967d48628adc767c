vllm serve Qwen/Qwen3-8B --max-model-len 65536 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 1.0, "original_max_position_embeddings": 40960}}'  # expect: CTX001
