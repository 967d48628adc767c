# gpu: l4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 8 --max-num-batched-tokens 4096
