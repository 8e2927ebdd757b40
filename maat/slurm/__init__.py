"""Slurm's answers as data: one reader of each thing that it writes, for every version since 21.08.

Pure: text or JSON in, frozen dataclasses out. The engine `slurm`, the import of traces (sacct) and
the import of clusters (scontrol, sinfo, slurm.conf) all read through it. It runs no command.
"""
