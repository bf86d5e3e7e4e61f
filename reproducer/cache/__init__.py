"""Namespaces on disk: what lies there, who uses it, whether it is what was sealed, and what may go."""
