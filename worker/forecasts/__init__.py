"""Works out forecasts, beside rounds: at most once a round, at most one core."""
