"""Two measured things side by side: what differs by more than noise, and whether one factor alone can be the cause."""
