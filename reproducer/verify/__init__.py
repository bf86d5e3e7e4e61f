"""Checking what others claim: receipts from their raw samples, bundles from their signatures."""
