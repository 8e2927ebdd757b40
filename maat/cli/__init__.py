"""The command line: one file per group of commands.

It decides nothing; it calls the simulator, the client and the supervisor.
"""
