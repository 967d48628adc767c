# class: {name: manuals, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B --max-model-len 65536 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1000000, "original_max_position_embeddings": 32768}, "max_position_embeddings": 65536}'
