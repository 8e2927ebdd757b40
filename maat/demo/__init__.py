"""`maat demo train`: three small models really train, on emulated GPUs of two types.

train.py      the play: starts Maat, submits, takes a node away, waits, writes the report
digits, translate, matrix     the scripts that train; emulated.py is the GPU they run on
recording.py  what the service says of the run, once it is over
replay.py     the same jobs in the simulator, from the run's own profiles
page.py       the report
"""
