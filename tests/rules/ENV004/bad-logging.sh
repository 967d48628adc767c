VLLM_LOGGING_LEVEL=DEBUG vllm serve Qwen/Qwen3-8B  # expect: ENV004
