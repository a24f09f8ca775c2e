"""How what the paper's text leaves open is read: as data, so that every reading can be played."""

from dataclasses import dataclass

from sketchbandit.errors import InputError
from sketchbandit.simulation.specs import Spec

ROWS, LARGEST = "rows", "largest"
EACH, SHARED, UNTUNED = "each", "shared", "none"
_NORMALISED = {
    ROWS: "every row of length one",
    LARGEST: "all rows divided by the largest norm",
}
_TUNED = {
    EACH: "lambda and beta chosen for each setting of each method",
    SHARED: "one lambda and beta for all methods, chosen on OFUL",
    UNTUNED: "lambda 1 and beta 0.1, nothing tuned",
}
_USUAL_NOISE = 0.1


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is done where the text allows for more than one thing.

    Attributes
    ----------
    name : str
        On the command line.
    normalise : str
        "Vector normalization based on the l2 norm": "rows" (each to length one) or "largest" (all divided by
        the largest norm of the data set).
    tuning : str
        Lambda and beta are chosen for "each" setting of each method; "shared": one pair, chosen on OFUL,
        for all; "none": lambda 1 and beta 0.1.
    noise : float
        Standard deviation of the noise on synthetic arms of length one. Arms N(0, I) in 500 dimensions with
        noise 0.1, as they are, equal arms of length one with noise 0.1 / sqrt(500) = 0.0045.

    """

    name: str
    normalise: str
    tuning: str
    noise: float

    @property
    def sentence(self) -> str:
        """With its name, for where several readings stand side by side."""
        return f"reading {self.name}: {self.words}"

    @property
    def words(self) -> str:
        """What it does, for figures and the report."""
        return f"{self.words_of_data}, {_TUNED[self.tuning]}"

    @property
    def words_of_data(self) -> str:
        """What it does with the data."""
        return f"{_NORMALISED[self.normalise]}, synthetic noise {self.noise:g}"

    def environment(self, asked: Spec) -> Spec:
        """An environment as it is read; what it says itself it keeps."""
        if asked.name in ("classification", "contextual") and self.normalise != ROWS:
            return asked.with_settings(**{"normalise": self.normalise, **dict(asked.settings)})
        if asked.name == "gaussian" and self.noise != _USUAL_NOISE:
            return asked.with_settings(**{"noise": self.noise, **dict(asked.settings)})
        return asked


_DATA = {"unit": (ROWS, _USUAL_NOISE), "largest": (LARGEST, 0.0045)}
_TUNING = {"each": EACH, "shared": SHARED, "untuned": UNTUNED}
READINGS: dict[str, Reading] = {
    f"{data}-{tuned}": Reading(name=f"{data}-{tuned}", normalise=normalise, noise=noise, tuning=tuning)
    for data, (normalise, noise) in _DATA.items()
    for tuned, tuning in _TUNING.items()
}
DEFAULT = READINGS["unit-each"]
LIKELY = READINGS["largest-shared"]
"""What the paper most likely did, judged by its text and its table of space, not by our results.

*Largest*, because of the table of space: DBS(50, 8) holds 2,842 KB after 2,000 rounds of MNIST. With rows of
length one a block of 50 rows is full after 400 rounds, one of 100 after 800 more, the exact one follows:
4,802 KB. With rows divided by the largest norm (mean square 0.298) the first lasts 1,340 rounds, and there
are two: 150 rows, the space of SOFUL with l = 150, as the table says. *Noise 0.0045*, because the arms of
the bandit are N(0, I), and only the rows of the matrix experiment are said to be normalised. *Shared*,
because "the confidence ellipsoid beta of all algorithms is searched"; the text speaks of no search
for a size, and warns of sizes that were not tuned.
"""
OF_THE_PAPER = tuple(reading for reading in READINGS.values() if reading.tuning != UNTUNED)
"""Those that the text allows; it does tune."""


def reading(name: str) -> Reading:
    """The reading of that name."""
    if name not in READINGS:
        raise InputError(f"unknown reading {name!r}; choose from {', '.join(READINGS)}")
    return READINGS[name]
