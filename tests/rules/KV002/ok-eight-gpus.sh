# gpu: h100-sxm x 8
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8
