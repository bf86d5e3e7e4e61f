"""What must not leave the machine, taken out of texts and documents."""
