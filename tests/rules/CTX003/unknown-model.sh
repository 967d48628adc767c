VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve org/not-known --max-model-len 131072
