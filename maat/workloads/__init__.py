"""Jobs over time: published traces read from files, and generators."""
