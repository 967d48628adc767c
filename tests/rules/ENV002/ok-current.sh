VLLM_USE_DEEP_GEMM=0 vllm serve Qwen/Qwen3-8B
