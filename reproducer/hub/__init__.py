"""Checkpoints from a Hugging Face hub: resolved, listed, fetched into the hub's own cache, verified and presented."""
