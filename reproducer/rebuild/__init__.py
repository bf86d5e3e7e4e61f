"""Two builds of one thing: the level between them, and a readable list of what differs."""
