# gpu: h100-sxm x 8
vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 4 --data-parallel-size 2
