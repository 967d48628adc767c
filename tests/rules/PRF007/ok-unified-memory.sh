# gpu: gb10 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.5
