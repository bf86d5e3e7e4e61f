"""What strangers packed, read and written so that nothing leaves its folder or grows without bound."""
