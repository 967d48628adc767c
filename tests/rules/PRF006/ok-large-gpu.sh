# 3 % of an H200 are 4.2 GiB.
# gpu: h200-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.97
