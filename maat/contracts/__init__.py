"""What every policy keeps, on whatever a round may be given: for Maat's own tests and for yours.

generated.py generated_quotas.py small_rounds.py   rounds of every kind, drawn by hypothesis
subject.py        a policy that is examined, and a round with what it made of it
decisions.py repeating.py quotas.py weights.py     claims: each yields what breaks it, in sentences
listing.py        all contracts in plain English
time_limit.py     ends what takes too long
checking.py       holds a policy to them; words.py: a counter-example in words

`python -m maat.check_policy` is the command. Needs hypothesis (`pip install 'maat[check]'`).
"""
