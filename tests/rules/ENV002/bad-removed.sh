VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B  # expect: ENV002
