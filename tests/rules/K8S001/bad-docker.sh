# vllm-project/vllm#1710: no --ipc=host and no --shm-size.
docker run --gpus 4 vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-8B --tensor-parallel-size 4  # expect: K8S001
