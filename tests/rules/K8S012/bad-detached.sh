docker run -d --gpus '"device=0"' vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-8B --port 8001
docker run -d --gpus '"device=0"' vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-8B --port 8002  # expect: K8S012
