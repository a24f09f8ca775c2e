"""The means, widths and upper confidence bounds of arms."""

import math
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, Offer, Scan, is_vector, refuse
from sketchbandit.array_api import is_foreign, library_of
from sketchbandit.arrays import Vector
from sketchbandit.explore import ArmCandidates, upper_bound
from sketchbandit.policy.scaled import ScaledPolicy


def given_back(values: Vector, arms: Any) -> Any:
    """Return values in the array library, and on the device, that the arms came from."""
    library = arms.arms.library if isinstance(arms, Offer) else library_of(arms) if is_foreign(arms) else None
    return values if library is None or library.on_host else library.put(values, library.widest)


class Scoring(ScaledPolicy):
    """The numbers that choices are made from."""

    def mean(self, arms: Any) -> Any:
        """The mean reward of every arm, shape (K,); a float for a single arm (dim,).

        With ``Logistic`` rewards it is a probability.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> policy.update([1.0, 0.0], 1.0)
        >>> policy.mean([[1.0, 0.0], [0.0, 1.0]])
        array([0.5, 0. ])

        """
        means = self._estimate.expected(self._scan(self._read(arms)).means + self._estimate.baseline)
        return float(means[0]) if is_vector(arms) else given_back(means, arms)

    def margin(self, arms: Any) -> Any:
        """The baseline plus x'theta of every arm, shape (K,); a float for a single arm (dim,).

        For linear rewards, this is the mean reward.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2, rewards=sb.Logistic())
        >>> policy.margin([1.0, 0.0]), policy.mean([1.0, 0.0])
        (0.0, 0.5)

        """
        margins = self._scan(self._read(arms)).means + self._estimate.baseline
        return float(margins[0]) if is_vector(arms) else given_back(margins, arms)

    def width(self, arms: Any) -> Any:
        """The confidence width sqrt(x'A^-1 x) of every arm, shape (K,); a float for a single arm (dim,)."""
        widths = self._candidates(self._read(arms)).widths()
        return float(widths[0]) if is_vector(arms) else given_back(widths, arms)

    def ucb(self, arms: Any) -> Any:
        """The upper confidence bound, margin + radius·width, of every arm; a float for a single arm (dim,).

        For linear rewards the margin is the mean. Otherwise this is a bound on x'theta*, before the link.
        """
        candidates = self._candidates(self._read(arms))
        bounds = upper_bound(candidates.means, candidates.radius, candidates.widths())
        scores = bounds + candidates.baseline  # last, so that the order is that of the choice
        return float(scores[0]) if is_vector(arms) else given_back(scores, arms)

    def _candidates(self, arms: Arms) -> ArmCandidates:
        """The arms as a rule sees them. Raises unless all scores are finite."""
        radius, scan = self.radius, self._scan(arms)
        with np.errstate(over="ignore"):
            most = np.abs(scan.means).max() + radius * np.sqrt(scan.norms_sq.max() / self._precision.shift)
        if not math.isfinite(most):
            raise refuse(arms, scan.norms_sq, scan.means)
        expected = self._estimate.expected if self._estimate.has_link else None
        return ArmCandidates(scan, self._precision, radius, expected, self._estimate.baseline)

    def _scan(self, arms: Arms) -> Scan:
        """Means and norms. Raises unless all of them are finite."""
        self._precision.sync()  # a user's own reward model may not do this
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self._estimate.scan(arms)
        if not (np.isfinite(scan.norms_sq).all() and np.isfinite(scan.means).all()):
            raise refuse(arms, scan.norms_sq, scan.means)
        return scan
