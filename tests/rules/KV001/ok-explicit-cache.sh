# 16 GiB for the request and one block of 2 MiB beside it.
# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-memory-bytes 17181966336
