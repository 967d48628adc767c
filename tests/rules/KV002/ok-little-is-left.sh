# Too little for one request, but not nothing: KV001's.
# gpu: rtx-4090 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.8  # expect: KV001
