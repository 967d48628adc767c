vllm serve some/unknown-model --max-model-len 131027  # expect: CTX010
