# vllm-advisor: ignore=CTX001,FLG001 reason="stretched with YaRN"  # expect: SUP002
vllm serve Qwen/Qwen3-8B --max-model-len 131072
