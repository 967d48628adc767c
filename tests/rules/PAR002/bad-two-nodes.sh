# gpu: h100-sxm x 8 x 2
vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8 --distributed-executor-backend ray -pp 4  # expect: PAR002
