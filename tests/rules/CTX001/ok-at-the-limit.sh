vllm serve Qwen/Qwen3-8B --max-model-len 40960
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 128K
vllm serve Qwen/Qwen3-8B --max-model-len auto
vllm serve Qwen/Qwen3-8B
