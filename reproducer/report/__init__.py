"""Evidence as a page that a person reads."""
