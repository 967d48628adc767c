VLLM_API_KEY="$VLLM_API_KEY" vllm serve Qwen/Qwen3-8B

vllm serve Qwen/Qwen3-8B --api-key "$KEY"

vllm serve Qwen/Qwen3-8B --api-key "<your key>"

vllm serve Qwen/Qwen3-8B --api-key your-api-key
