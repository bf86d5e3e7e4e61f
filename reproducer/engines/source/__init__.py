"""What an engine takes, read from its Python source: parsed, followed as far as it is constant, and never run."""
