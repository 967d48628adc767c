# vllm-advisor: ignore=KV001 reason="no GPU is named, so nobody knows"
vllm serve Qwen/Qwen3-8B
