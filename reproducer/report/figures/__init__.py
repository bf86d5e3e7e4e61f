"""Figures of a report: distributions, never single bars."""
