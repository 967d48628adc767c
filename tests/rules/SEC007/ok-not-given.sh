vllm serve Qwen/Qwen3-8B

vllm serve Qwen/Qwen3-8B --no-trust-remote-code
