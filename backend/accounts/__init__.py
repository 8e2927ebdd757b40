"""Who asks: tenants, users, tokens, and what each role may do."""
