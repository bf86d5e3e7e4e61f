"""What a difference between two locks costs: every change with its consequence, and which evidence it takes away."""
