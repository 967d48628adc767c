# Tensor parallelism divides the 8 KV heads already.
# gpu: h100-sxm x 8
vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 8 --decode-context-parallel-size 2  # expect: PAR001
