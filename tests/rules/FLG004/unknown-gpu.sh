vllm serve Qwen/Qwen3-8B --block-size 24
