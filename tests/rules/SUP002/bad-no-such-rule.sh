vllm serve Qwen/Qwen3-8B  # vllm-advisor: ignore=CTX999 reason="mistyped"  # expect: SUP002
