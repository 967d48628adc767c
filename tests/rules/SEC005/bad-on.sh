VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen3-8B  # expect: SEC005
