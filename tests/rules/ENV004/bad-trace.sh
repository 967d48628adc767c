VLLM_TRACE_FUNCTION=1 vllm serve Qwen/Qwen3-8B  # expect: ENV004
