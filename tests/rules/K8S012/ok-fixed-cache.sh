vllm serve Qwen/Qwen3-8B --port 8001 --kv-cache-memory-bytes 4G &
vllm serve Qwen/Qwen3-8B --port 8002 --kv-cache-memory-bytes 4G &
