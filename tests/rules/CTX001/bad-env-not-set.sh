VLLM_ALLOW_LONG_MAX_MODEL_LEN=0 vllm serve Qwen/Qwen3-8B --max-model-len 65536  # expect: CTX001
