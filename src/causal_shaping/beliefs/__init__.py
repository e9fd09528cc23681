"""What logs suggest, inside what they prove."""
