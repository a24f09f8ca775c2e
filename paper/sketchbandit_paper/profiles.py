"""How much of an experiment is done: the paper's own amount, or less."""

from dataclasses import dataclass, replace

from sketchbandit.errors import InputError
from sketchbandit_paper import readings
from sketchbandit_paper.readings import Reading

BETAS = tuple(10.0**k for k in range(-4, 1))
"""The paper's grid (App. Experimental Setups)."""
RIDGES = tuple(2.0 * 10.0**k for k in range(-4, 5))

FIRST_TUNING_SEED = 1_000_000  # tuning never sees the permutations that are reported
TUNING_STRIDE = 7  # a permutation's target is its seed modulo the labels: so they are far apart


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The amount of work.

    Attributes
    ----------
    rounds : float
        Share of the rounds of the definition.
    permutations : int
        Seeds that every reported figure is the mean of.
    tuning_permutations : int
        Further seeds, on which ridge and beta are chosen.
    tuning_rounds : float
        Share of the rounds played for that.
    betas, ridges : tuple of float
        The grids.
    sweep : int
        How many members of a family (sizes of one method) are run in a sweep; 0 for all.
    reading : Reading
        How the paper is read where it leaves something open.

    """

    name: str
    rounds: float = 1.0
    permutations: int
    tuning_permutations: int
    tuning_rounds: float
    betas: tuple[float, ...] = BETAS
    ridges: tuple[float, ...] = RIDGES
    sweep: int = 0
    reading: Reading = readings.DEFAULT

    @property
    def sentence(self) -> str:
        """What was shrunk, and how the paper was read, for figures and the report."""
        tuned = bool(self.tuning_permutations)
        return f"{self.amount}; {self.reading.words if tuned else self.reading.words_of_data}"

    @property
    def tunes(self) -> bool:
        """Whether a grid of lambda and beta is searched."""
        return bool(self.tuning_permutations) and self.reading.tuning != readings.UNTUNED

    @property
    def amount(self) -> str:
        """What was shrunk."""
        if not self.tuning_permutations:
            return f"{self.permutations} permutation{'s' * (self.permutations > 1)}, beta and lambda as given"
        text = f"{self.permutations} permutations"
        if self.tunes:
            text += (
                f", {len(self.betas)} x {len(self.ridges)} grid of beta and lambda chosen on "
                f"{self.tuning_permutations} other{'s' if self.tuning_permutations > 1 else ''}"
            )
            if self.tuning_rounds < 1.0:
                text += f" at {self.tuning_rounds:.0%} of the rounds"
        if self.rounds < 1.0:
            text += f"; {self.rounds:.0%} of the paper's rounds"
        if self.sweep:
            text += f"; {self.sweep} sizes a method"
        return text


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="quick",
            rounds=0.25,
            permutations=3,
            tuning_permutations=1,
            tuning_rounds=0.5,
            betas=(0.01, 0.1),
            ridges=(0.02, 2.0, 20.0),
            sweep=3,
        ),
        Profile(name="half", permutations=10, tuning_permutations=2, tuning_rounds=0.5),
        Profile(name="standard", permutations=20, tuning_permutations=2, tuning_rounds=0.5),
        Profile(name="paper", permutations=20, tuning_permutations=5, tuning_rounds=1.0),
    )
}


TOUR = replace(PROFILES["quick"], name="tour", permutations=5, reading=readings.reading("unit-untuned"))
"""What the tour does: under a minute on two cores. More seeds than the quick profile, and nothing tuned."""


def profile(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        raise InputError(f"unknown profile {name!r}; choose from {', '.join(PROFILES)}")
    return PROFILES[name]
