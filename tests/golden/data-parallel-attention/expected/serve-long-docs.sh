#!/usr/bin/env bash
# Instance long-docs (long-document) of the plan workload.
# Serves: reports.
#
# 1 replica of 8 GPUs (NVIDIA B200). To start it:
#   CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 ./serve-long-docs.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say for each of its 8 engines:
#   GPU KV cache size: 834,816 tokens, Maximum concurrency for 131,072 tokens per request: 6.37x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [long-docs.served-model-name; formula:role-names]
  --served-model-name deepseek-ai/DeepSeek-V3.2 long-docs
  # 8 engines, each with its own attention, its own KV cache and its own max_num_seqs,
  # behind one port: tensor parallelism over 8 GPUs would hold the latent cache more
  # than once. Attention weights are held by every engine [long-docs.data-parallel-size;
  # vllm:0.33.0:vllm/v1/engine/core_client.py#DPLBAsyncMPClient]
  --data-parallel-size 8
  # each of the 8 GPUs holds whole experts, 1/8 of them
  # [long-docs.enable-expert-parallel;
  # vllm:0.33.0:vllm/config/parallel.py#enable_expert_parallel]
  --enable-expert-parallel
  # class reports needs 131,000 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [long-docs.max-model-len;
  # user:workload.yaml:6]
  --max-model-len 131072
  # vLLM's default for this version; stated because older versions took 0.90
  # [long-docs.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # 16 requests at once over 1 replica of 8 engines, a quarter more, in eights; the
  # profile run pays activation memory for every sequence [long-docs.max-num-seqs;
  # formula:sequences]
  --max-num-seqs 8
  # a share of 8,192 for each engine, 2,048 at least: experts get the tokens of all 8
  # engines in one step, 16,384 at most, and memory for as many is set aside at start-up
  # [long-docs.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 2048
  # costs nothing when nothing repeats. On by default; stated so that it stays on
  # [long-docs.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # part of the verified recipe of deepseek-ai/DeepSeek-V3.2 [long-docs.kernel-config;
  # docs:vllm-project/recipes@8959cf6 models/deepseek-ai/DeepSeek-V3.2.yaml
  # (Apache-2.0)]
  --kernel-config '{"enable_flashinfer_autotune":false}'
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [long-docs.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [long-docs.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [long-docs.model; user:workload.yaml:2]
exec vllm serve deepseek-ai/DeepSeek-V3.2 "${args[@]}" "$@"
