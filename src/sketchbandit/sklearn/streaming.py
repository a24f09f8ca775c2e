"""The base class of the estimators: they learn from a stream, and compute attributes when asked."""

from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sketchbandit.sketch import Sketch


class StreamingEstimator(BaseEstimator):
    """Keeps what it has learned in ``_learned``, an object with ``count`` and ``sketch``."""

    _learned: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, learned: Any, *data: Any) -> Self:
        """Let ``learned`` learn, and keep it, unless it raises."""
        learned.update(*data)
        self._learned = learned
        return self

    @property
    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} has learned nothing yet; call fit or partial_fit first"
            )
        return self._learned

    @property
    def sketch_(self) -> Sketch:
        """The sketch of the centred rows."""
        sketch: Sketch = self._fitted.sketch
        return sketch

    @property
    def error_bound_(self) -> float:
        """The error bound e: Xc'Xc ⪯ S'S + e I."""
        return self.sketch_.error_bound

    @property
    def n_samples_seen_(self) -> int:
        """The number of rows seen."""
        return int(self._fitted.count)
