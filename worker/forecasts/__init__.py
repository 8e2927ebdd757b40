"""Works out forecasts beside rounds, of clusters of which somebody reads them: at most a core."""
