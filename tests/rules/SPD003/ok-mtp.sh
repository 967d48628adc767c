vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'
