"""Sketches and policies of Dask collections: partitions are read where they are, small results are merged.

Examples
--------
>>> import dask.array as da, sketchbandit as sb
>>> from sketchbandit.dask import sketch
>>> X = da.random.default_rng(0).standard_normal((4000, 30), chunks=(500, 30))
>>> made = sketch(X, lambda dim: sb.FrequentDirections(dim, size=10))
>>> made.count, made.error_bound <= made.mass / 10
(4000, True)

"""

from sketchbandit.extras import how_to_install

try:
    import dask  # noqa: F401  (to say which extra is missing)
except ModuleNotFoundError as error:
    needs = f"sketchbandit.dask needs dask: {how_to_install('dask')}"
    raise ModuleNotFoundError(needs, name="dask") from error

from sketchbandit.dask.reductions import fit_logged, sketch

__all__ = ["fit_logged", "sketch"]
