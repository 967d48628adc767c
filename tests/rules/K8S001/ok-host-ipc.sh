docker run --gpus 4 --ipc=host vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-8B -tp 4
docker run --gpus 4 --shm-size=10g vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-8B -tp 4
