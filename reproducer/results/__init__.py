"""Results of other harnesses: their files read as a stranger's, every field mapped or named."""
