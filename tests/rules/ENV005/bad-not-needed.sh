# gpustack/runner#225
pip install vllm-gguf-plugin  # expect: ENV005
vllm serve Qwen/Qwen3-8B
