"""Capability suites: what a model does with tools and whether it reasons to the right answer, at a declared effort."""
