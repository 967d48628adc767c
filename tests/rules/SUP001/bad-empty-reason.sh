# vllm-advisor: ignore-file=max-model-len-above-model-limit reason=" "  # expect: SUP001
vllm serve Qwen/Qwen3-8B --max-model-len 131072
