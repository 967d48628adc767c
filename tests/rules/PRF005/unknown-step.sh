vllm serve Qwen/Qwen3-8B --long-prefill-token-threshold 8192
