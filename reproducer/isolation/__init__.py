"""Other people's code, run apart from the host: a scrubbed environment, no network, nothing left behind."""
