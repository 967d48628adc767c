# Loads, answers /health, and dies at the first long request.
VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen3-8B --max-model-len 131072  # expect: CTX003
