"""Sources from git: one commit of a repository, resolved, fetched, and exported as the tree that its hash names."""
