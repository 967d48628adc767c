vllm serve Qwen/Qwen3-8B --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000, "original_max_position_embeddings": 8192}}'  # expect: CTX006
