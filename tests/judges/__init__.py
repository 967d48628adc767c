"""Judges of what we render: each asks the real tool, or the data it is made of.

Every judge returns problems as lines of text, none meaning that the target would accept it, and
never takes something it does not know for right. Nothing here reaches a network or a cluster.
"""
