"""Locks between two locks: which of them to measure so that a difference can be attributed to groups of factors."""
