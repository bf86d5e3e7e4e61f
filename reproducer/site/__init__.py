"""A static page over a folder of bundles: each verified, runs over time, locks and what differs between them."""
