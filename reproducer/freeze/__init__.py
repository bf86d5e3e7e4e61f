"""`penny freeze`: a lock of what is installed and running now, and the runtime of such a lock."""
