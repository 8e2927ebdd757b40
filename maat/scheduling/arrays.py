"""Array types by what they hold. Counts are int64, quantities float64.

Docstrings name the axes: J jobs, C configurations, T GPU types, B batch-size candidates, P
feasible (job, configuration) pairs, G GPUs, N nodes, R limits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
