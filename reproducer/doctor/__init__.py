"""What this machine gives and what a lock needs of it: the host, and a disk through the runtime's own NIXL."""
