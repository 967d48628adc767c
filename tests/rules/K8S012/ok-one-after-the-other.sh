vllm serve Qwen/Qwen3-8B && echo done
vllm serve Qwen/Qwen3-8B
