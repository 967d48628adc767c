VLLM_LOGING_LEVEL=INFO vllm serve Qwen/Qwen3-8B  # expect: ENV001
