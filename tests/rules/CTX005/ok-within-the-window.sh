vllm serve openai/gpt-oss-20b --disable-sliding-window --max-model-len 128
