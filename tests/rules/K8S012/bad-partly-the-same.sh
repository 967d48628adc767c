# GPUs 0 and 1 against GPU 1: 0.92 + 0.2.
CUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen3-8B -tp 2 --port 8001 &
CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-8B --port 8002 --gpu-memory-utilization 0.2  # expect: K8S012
