"""Sketches of matrices that lie in files, larger than memory: in chunks, in several processes, resumable.

>>> import tempfile, numpy as np
>>> from sketchbandit import outofcore
>>> X = np.random.default_rng(0).standard_normal((2000, 30)) * 0.8 ** np.arange(30)
>>> with tempfile.TemporaryDirectory() as folder:
...     np.save(f"{folder}/x.npy", X)
...     sketch = outofcore.sketch([f"{folder}/x.npy"], size=10, jobs=1)
>>> error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
>>> sketch.count, bool(np.isclose(error, sketch.error_bound)), bool(sketch.error_bound < 0.02 * sketch.mass)
(2000, True, True)
"""

from sketchbandit.outofcore.job import Watcher, sketch

__all__ = ["Watcher", "sketch"]
