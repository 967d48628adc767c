VLLM_SERVER_DEV_MODE=0 vllm serve Qwen/Qwen3-8B

vllm serve Qwen/Qwen3-8B
