"""Asks vLLM's own code what it would allocate, on a machine without a GPU.

vLLM decides capacity in Python: which defaults a GPU gets, which attention backend, which block
size, what each layer keeps, how layers are grouped, how many blocks fit. All of that runs here
unpatched, with every tensor on the meta device. Faked is only the world it asks about:

=====================  =====================================================================
``fake_cuda``          the CUDA platform: capability, name, memory, eight devices
``stand_ins``          compiled extensions and the packages that only a GPU needs
``fake_ranks``         process groups, so that any rank of any world size can be built
=====================  =====================================================================

Bytes available to the KV cache are an input: nothing is profiled and no kernel runs.

Run it where vLLM is installed: ``python -m oracle --help`` from ``tests/real``.
"""
