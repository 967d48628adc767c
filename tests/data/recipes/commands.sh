# Commands of vllm-project/recipes@8959cf6 (models/*.yaml: base_args, the default variant's extra_args
# and the arguments of the tool calling and reasoning features), Apache-2.0. Changed: models that need
# several GPUs got --tensor-parallel-size 8, and Qwen3.5 lost VLLM_FLASHINFER_MOE_BACKEND, which vLLM
# has not read since 0.24.
vllm serve ByteDance-Seed/Seed-OSS-36B-Instruct --tensor-parallel-size 8 --enable-auto-tool-choice --tool-call-parser seed_oss
vllm serve google/gemma-4-26B-A4B-it --enable-auto-tool-choice --tool-call-parser gemma4 --chat-template examples/tool_chat_template_gemma4.jinja --reasoning-parser gemma4
vllm serve MiniMaxAI/MiniMax-M2.5 --tensor-parallel-size 8 --trust-remote-code --tool-call-parser minimax_m2 --enable-auto-tool-choice --reasoning-parser minimax_m2
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3
VLLM_DEEP_GEMM_WARMUP=skip VLLM_USE_DEEP_GEMM=0 vllm serve Qwen/Qwen3.5-397B-A17B --tensor-parallel-size 8 --trust-remote-code --enable-auto-tool-choice --tool-call-parser qwen3_coder --reasoning-parser qwen3
vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 8 --trust-remote-code --enable-expert-parallel --enable-auto-tool-choice --tool-call-parser deepseek_v3 --chat-template examples/tool_chat_template_deepseekv3.jinja --reasoning-parser deepseek_v3
vllm serve mistralai/Mistral-Small-4-119B-2603 --tensor-parallel-size 8 --max-model-len 262144 --enable-auto-tool-choice --tool-call-parser mistral --reasoning-parser mistral
vllm serve moonshotai/Kimi-K2-Instruct --trust-remote-code --tokenizer-mode auto --enable-auto-tool-choice --tool-call-parser kimi_k2 --tensor-parallel-size 8
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --trust-remote-code --async-scheduling --kv-cache-dtype auto --enable-auto-tool-choice --tool-call-parser qwen3_coder --reasoning-parser-plugin nano_v3_reasoning_parser.py --reasoning-parser nano_v3
vllm serve openai/gpt-oss-20b --tool-call-parser openai --enable-auto-tool-choice
vllm serve stepfun-ai/Step-3.7-Flash --tensor-parallel-size 8 --trust-remote-code --enable-expert-parallel --disable-cascade-attn --tool-call-parser step3p5 --enable-auto-tool-choice --reasoning-parser step3p5
