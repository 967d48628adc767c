# Two of sixteen engines; the others are started elsewhere.
# gpu: h100-sxm x 8
vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 4 --data-parallel-size 16 --data-parallel-size-local 2
