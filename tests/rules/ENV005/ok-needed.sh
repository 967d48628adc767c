pip install -c vllm-metal vllm-gguf-plugin
vllm serve /models/model-Q4_K_M.gguf --quantization gguf --tokenizer /models
