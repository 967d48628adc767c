docker run --gpus 1 vllm/vllm-openai --model Qwen/Qwen3-8B  # expect: K8S029
