vllm serve Qwen/Qwen3-8B --max-model-len 40961  # expect: CTX001
