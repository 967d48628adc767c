vllm serve Qwen/Qwen3-8B --port 8001 --gpu-memory-utilization 0.45 &
vllm serve Qwen/Qwen3-8B --port 8002 --gpu-memory-utilization 0.45 &
