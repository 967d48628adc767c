VLLM_PORT=12345 vllm serve Qwen/Qwen3-8B
