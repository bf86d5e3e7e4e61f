"""Measuring a running server: requests over HTTP, raw samples, numbers derived from them, receipts."""
