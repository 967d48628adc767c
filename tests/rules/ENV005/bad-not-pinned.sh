python -m pip install -U vllm vllm-metal==0.1.0  # expect: ENV005
vllm serve Qwen/Qwen3-0.6B
