"""Previews of rounds: what the next one would do after a change of the cluster."""
