# 32,768 x 2 = 65,536 positions under a length of 131,072.
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}'  # expect: CTX003
