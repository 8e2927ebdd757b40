"""The policy laboratory as a whole: what tenants compute in it."""
