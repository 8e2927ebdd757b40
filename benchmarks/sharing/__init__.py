"""SJF-BSBF's experiment."""
