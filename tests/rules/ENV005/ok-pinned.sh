uv pip install vllm==0.33.0 "vllm_spyre==1.2.0" --torch-backend auto
vllm serve Qwen/Qwen3-0.6B
