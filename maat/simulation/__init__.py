"""The policy laboratory: what jobs truly do (never visible to a policy), workloads, and the engine that plays them through."""
