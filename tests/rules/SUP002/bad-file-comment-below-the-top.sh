export PORT=8000
# vllm-advisor: ignore-file=CTX001 reason="stretched with YaRN"  # expect: SUP002
vllm serve Qwen/Qwen3-8B --max-model-len 131072  # expect: CTX001
