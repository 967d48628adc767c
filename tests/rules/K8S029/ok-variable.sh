docker run --gpus 1 vllm/vllm-openai:$TAG --model Qwen/Qwen3-8B
