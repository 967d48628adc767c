# vllm-advisor: ignore CTX001  # expect: SUP002
# vllm-advisor: ignore=CTX001 reason=unquoted  # expect: SUP002
vllm serve Qwen/Qwen3-8B --max-model-len 131072  # expect: CTX001
