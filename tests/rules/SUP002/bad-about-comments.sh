# vllm-advisor: ignore-file=SUP001 reason="comments do not suppress this one"  # expect: SUP002
# vllm-advisor: ignore=CTX001  # expect: SUP001
vllm serve Qwen/Qwen3-8B --max-model-len 131072
