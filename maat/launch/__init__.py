"""Starts an attempt's processes on one machine, and keeps a record of them in its folder.

Standard library only, and nothing else of maat: it runs beside every training job.

control.py is what a worker calls; shim.py is the supervisor that it starts; rank.py makes a process
a rank; attempt_dir.py is the folder that they share; processes.py is what Linux says of processes.
"""
