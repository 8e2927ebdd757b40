"""A demo cluster that lives: several tenants' jobs, arriving by a daily rhythm, with a day of history. On where the settings ask for it."""
