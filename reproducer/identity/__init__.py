"""What a lock means: factors of cached bytes, the namespace over them, and what a difference of two locks costs."""
