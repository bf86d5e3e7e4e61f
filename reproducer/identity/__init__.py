"""What a lock means for cached bytes: factors, the namespace over them, and its folder on disk."""
