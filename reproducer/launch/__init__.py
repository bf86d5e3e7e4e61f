"""Starting the server of a lock, proving that it is the right one, and ending exactly what was started."""
