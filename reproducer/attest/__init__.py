"""Signing what was found: keys, statements, bundles."""
