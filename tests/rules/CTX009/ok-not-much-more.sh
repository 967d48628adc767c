# gpu: a100-sxm4-40 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768
