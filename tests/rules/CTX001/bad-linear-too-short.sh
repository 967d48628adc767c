# A linear factor counts: 40,960 x 2 = 81,920.
vllm serve Qwen/Qwen3-8B --max-model-len 81921 --hf-overrides '{"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1000000}}'  # expect: CTX001
