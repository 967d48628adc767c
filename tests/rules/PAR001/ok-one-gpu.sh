vllm serve Qwen/Qwen2.5-14B-Instruct
