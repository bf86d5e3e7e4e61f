"""Raw samples beside a receipt: compact, by digest, and bounded when they are read."""
