"""Traces: what a server's own log, its metrics or a table says of the requests that it served."""
