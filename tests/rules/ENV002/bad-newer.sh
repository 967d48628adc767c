# vllm: 0.32.0
VLLM_REQUEST_BODY_LOG_LEVEL=INFO vllm serve Qwen/Qwen3-8B  # expect: ENV002
