vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --gpu-memory-utilization 0.7
