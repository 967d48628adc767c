# gpu: h100-sxm x 8
vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8 -pp 2 --nnodes 2 --node-rank 0
