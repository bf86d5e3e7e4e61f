"""Building: from verified inputs to a runtime, and what a build receipt says about it."""
