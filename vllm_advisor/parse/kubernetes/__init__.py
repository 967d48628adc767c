"""Kubernetes manifests, and fragments of them, into what they deploy."""
