"""What is asked of a unit to learn a property of it, and what the answers say."""
