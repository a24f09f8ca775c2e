"""What an experiment is: who plays where, how long, and how it is shown."""

from dataclasses import dataclass
from typing import Any

from sketchbandit.data import CATALOGUE
from sketchbandit.simulation.specs import Spec


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a figure draws as one line: a method, with the settings it is run with."""

    label: str
    members: tuple[Spec, ...]
    reported: float | None = None
    """What the paper reports of it, where a table sets that beside ours."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    id, title, paper : str
        Its name on the command line; what it shows; where it stands in the paper ("ours" if it does not).
    environment : Spec
        Where it is played.
    series : tuple of Series
        Who plays. The others are measured by the first.
    rounds, points : int
        How long, and how many times on the way a row is written.
    figure : str
        How it is drawn.
    kind : str
        That of its runs: "play" (ridge and beta tuned), "click" (likewise), "starve" or "approximate".
    spectrum : str
        Whether the spectrum of the chosen arms is measured: "no", at the "end", at "all" points.
    own_colours : bool
        Whether each series has a colour of its own. By default it has its method's, and a dash of its own.
    optional : bool
        Whether it is left out where nobody asks for it by its id.
    notes : tuple of str
        What a reader of its results should know.

    """

    id: str
    title: str
    environment: Spec
    series: tuple[Series, ...]
    rounds: int = 2000
    figure: str = "curves"
    paper: str = "ours"
    points: int = 40
    kind: str = "play"
    spectrum: str = "no"
    own_colours: bool = False
    optional: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Experiment":
        """The inverse of ``dataclasses.asdict``, also after a journey through JSON."""
        series = tuple(
            Series(**{**given, "members": tuple(Spec.from_list(member) for member in given["members"])})
            for given in fields["series"]
        )
        read = {"environment": Spec.from_list(fields["environment"]), "series": series}
        return cls(**{**fields, **read, "notes": tuple(fields.get("notes", ()))})

    @property
    def data(self) -> str | None:
        """The data set that it needs; None for what is drawn at random."""
        name = self.environment.get("data")
        return None if name == "gaussian" else name

    @property
    def embedded(self) -> bool:
        """Whether it is run by default: it needs no file and no download."""
        return not self.optional and (self.data is None or CATALOGUE[self.data].embedded)
