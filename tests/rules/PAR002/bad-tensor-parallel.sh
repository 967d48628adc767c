# gpu: h100-sxm x 2
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 4  # expect: PAR002
