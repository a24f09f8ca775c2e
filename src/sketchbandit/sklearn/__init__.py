"""scikit-learn estimators on sketches: for data of any length, with a certified error.

Examples
--------
>>> import numpy as np
>>> from sketchbandit.sklearn import SketchedPCA, SketchedRidge
>>> X = np.random.default_rng(0).standard_normal((500, 20)) * 0.7 ** np.arange(20) + 3.0
>>> SketchedPCA(n_components=2).fit_transform(X).shape
(500, 2)
>>> y = X @ np.ones(20)
>>> bool(SketchedRidge(alpha=0.01).fit(X, y).score(X, y) > 0.99)
True

"""

from sketchbandit.extras import how_to_install

try:
    import sklearn  # noqa: F401  (to say which extra is missing)
except ModuleNotFoundError as error:
    needs = f"sketchbandit.sklearn needs scikit-learn: {how_to_install('sklearn')}"
    raise ModuleNotFoundError(needs, name="sklearn") from error

from sketchbandit.sklearn.newton import SketchedNewtonClassifier, SketchedNewtonRegressor
from sketchbandit.sklearn.pca import SketchedPCA
from sketchbandit.sklearn.ridge import SketchedRidge

__all__ = ["SketchedNewtonClassifier", "SketchedNewtonRegressor", "SketchedPCA", "SketchedRidge"]
