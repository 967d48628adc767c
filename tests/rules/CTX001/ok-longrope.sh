# Starts at 4,096 by default, and takes up to max_position_embeddings when asked.
vllm serve microsoft/Phi-3.5-mini-instruct --max-model-len 131072
