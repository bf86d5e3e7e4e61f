"""How each measure works: a file for each family, and the registry that finds them by id."""
