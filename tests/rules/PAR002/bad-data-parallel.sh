# 2 x 4 ranks.
# gpu: h100-sxm x 4
vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 4 --data-parallel-size 2  # expect: PAR002
