#!/usr/bin/env bash
# Instance long-docs (long-document) of the plan coding-agents.
# Serves: agent-step, repository-review.
#
# 1 replica of 8 GPUs (NVIDIA H200). To start it:
#   CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 ./serve-long-docs.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 2,324,544 tokens, Maximum concurrency for 228,352 tokens per request: 10.18x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [long-docs.served-model-name; formula:role-names]
  --served-model-name Qwen/Qwen3-Coder-480B-A35B-Instruct long-docs
  # divides weights over 8 GPUs of one node, and the KV heads with them
  # [long-docs.tensor-parallel-size; formula:cheapest-candidate]
  --tensor-parallel-size 8
  # class repository-review needs 228,000 tokens of prompt and answer; rounded up to
  # 1,024 and no further: every token of it has to fit at start-up
  # [long-docs.max-model-len; user:coding-agents.yaml:20]
  --max-model-len 228352
  # vLLM's default for this version; stated because older versions took 0.90
  # [long-docs.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # weights are quantized to FP8 while loading: the first step of the memory ladder, and
  # it saves GPUs. A published FP8 checkpoint, Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8,
  # would load half the bytes [long-docs.quantization; formula:memory-ladder]
  --quantization fp8
  # 18 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [long-docs.max-num-seqs; formula:sequences]
  --max-num-seqs 24
  # long prompts without a tight target between tokens: chunks of 8,192 read a document
  # with few passes over the weights [long-docs.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 8192
  # class agent-step sends the same document or conversation 20 times in a row: its KV
  # cache is reused. On by default; stated so that it stays on
  # [long-docs.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # short requests share this instance with longer prompts: a long prompt takes at most
  # half of a step, so a short one is read beside it
  # [long-docs.long-prefill-token-threshold;
  # vllm:0.33.0:vllm/config/scheduler.py#long_prefill_token_threshold]
  --long-prefill-token-threshold 4096
  # the application uses tool calling; this is what Qwen/Qwen3-Coder-480B-A35B-Instruct
  # needs for it [long-docs.enable-auto-tool-choice; docs:vllm-project/recipes@8959cf6
  # models/Qwen/Qwen3-Coder-480B-A35B-Instruct.yaml (Apache-2.0)]
  --enable-auto-tool-choice
  # the application uses tool calling; this is what Qwen/Qwen3-Coder-480B-A35B-Instruct
  # needs for it [long-docs.tool-call-parser; docs:vllm-project/recipes@8959cf6
  # models/Qwen/Qwen3-Coder-480B-A35B-Instruct.yaml (Apache-2.0)]
  --tool-call-parser qwen3_coder
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [long-docs.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [long-docs.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [long-docs.model; user:coding-agents.yaml:4]
exec vllm serve Qwen/Qwen3-Coder-480B-A35B-Instruct "${args[@]}" "$@"
