"""Environments by name: ``classification:data=mnist``, ``gaussian:spectrum=flat``, ``motley``.

``contextual:data=mnist`` has one sample as the context and the labels as the actions. With ``standardize=1``
the columns of a data set have mean 0 and deviation 1 before rows are normalised.

Each may be varied by further settings: ``clicks=0.02`` (a base rate) and ``lift`` make clicks of its rewards,
``degrees=1.5`` or ``outliers=0.05`` and ``scale`` give its noise heavy tails, ``switch=1000`` changes it
after so many rounds, ``turn=5000`` turns the theta* of gaussian arms.

``stream`` has the rounds that several runs see, drawn once: that takes longer than most policies need.
"""

import inspect
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from sketchbandit import data
from sketchbandit.arrays import AnyArray, Rows, Vector
from sketchbandit.data import DataSet
from sketchbandit.data.dataset import column_name
from sketchbandit.environment import (
    Classification,
    Clicks,
    ContextualClassification,
    Environment,
    GaussianArms,
    HeavyTails,
    Rotating,
    Round,
    Switching,
)
from sketchbandit.errors import InputError
from sketchbandit.estimate import Estimate
from sketchbandit.simulation.specs import Spec, Value, spec

NAMES = ("classification", "contextual", "gaussian", "motley")
FLAT, POWER_LAW, LOW_RANK = (spec("gaussian", spectrum=name) for name in ("flat", "power-law", "low-rank"))
_ALIKE = 9  # the label of the kind whose members are alike
MNIST = spec("classification", data="mnist")
CHANGES = ("switch", "turn")
"""Settings that are numbers of rounds."""
VARIATIONS = ("clicks", "lift", "degrees", "outliers", "scale", "switch", "turn")
_WITH = {"lift": ("clicks",), "scale": ("degrees", "outliers")}
"""Settings of a variation, and what asks for it."""
_ROUNDS_LOOKED_AT = 20
_SEED_STEP = 500_000  # seeds between a theta* and the one that follows it


def build(environment: Spec, seed: int) -> Environment:
    """The environment of that seed, with the variations that its settings ask for."""
    asked: dict[str, Any] = {name: value for name, value in environment.settings if name in VARIATIONS}
    for name, needed in _WITH.items():
        if name in asked and not any(variation in asked for variation in needed):
            raise InputError(f"{environment}: {name} says nothing without {' or '.join(needed)}")
    if asked and environment.name == "contextual":
        raise InputError(f"the contextual protocol has no variations; leave out {', '.join(asked)}")
    found = _plain(environment.without(*asked), seed)
    if "switch" in asked:
        found = Switching(found, _other(found), at=asked["switch"])
    if "turn" in asked:
        if not isinstance(found, GaussianArms):
            raise InputError("only theta* of gaussian arms can turn; give classification a switch")
        found = Rotating(found, turn=asked["turn"])
    if "degrees" in asked or "outliers" in asked:
        tails = {name: asked[name] for name in ("degrees", "outliers", "scale") if name in asked}
        found = HeavyTails(found, seed=seed, **tails)
    if "clicks" in asked:
        lift = {"lift": asked["lift"]} if "lift" in asked else {}
        found = Clicks(found, base_rate=asked["clicks"], seed=seed, **lift)
    return found


def variations(environment: Spec) -> dict[str, Value]:
    """Its settings, all of which have to vary it."""
    for name, _ in environment.settings:
        if name not in VARIATIONS:
            raise InputError(
                f"{environment}: no variation is called {name!r}; there are {', '.join(VARIATIONS)}"
            )
    return dict(environment.settings)


def check_rewards(environment: Spec, model: Estimate) -> None:
    """Refuse rewards that a model has no place for, as the first rounds of the environment have them."""
    if type(model).check_reward is Estimate.check_reward:
        return
    for drawn in build(environment, seed=0).rounds(_ROUNDS_LOOKED_AT):
        for arm in range(len(drawn.means)):
            try:
                model.check_reward(drawn.reward(arm))
            except InputError as error:
                raise InputError(
                    f"{environment}: {error}; clicks=0.1 makes clicks of any environment"
                ) from error


def _other(first: Environment) -> Environment:
    """What the world becomes when it changes: another theta*, or the next label as the target."""
    if isinstance(first, Classification):
        return first.reseeded(first.seed, (first.target + 1) % first.label_count)
    if isinstance(first, GaussianArms):
        return first.with_theta_of(first.seed + _SEED_STEP)
    raise InputError(f"{first.name} has nothing that could change")


def _plain(environment: Spec, seed: int) -> Environment:
    settings = dict(environment.settings)
    if environment.name == "gaussian":
        known = [name for name in inspect.signature(GaussianArms).parameters if name != "seed"]
        for key in settings:
            if key not in known:
                raise InputError(f"gaussian has no setting {key!r}; it takes {', '.join(known)}")
        return GaussianArms(seed=seed, **settings)  # type: ignore[arg-type]  # checked by the class itself
    if environment.name in _OF_DATA:
        settings.pop("digest", None)  # names the contents of the user's file, for the key of a run
        first = _of_data(
            _OF_DATA[environment.name],
            str(settings.pop("data")),
            settings.pop("label", None),
            settings.pop("normalise", "rows"),
            bool(settings.pop("standardize", False)),
        )
        reseeded: Environment = first.reseeded(seed, **settings)
        return reseeded
    if environment.name == "motley":
        return _motley(**settings).reseeded(seed, target=_ALIKE)
    raise InputError(f"unknown environment {environment.name!r}; choose from {', '.join(NAMES)}")


def title(environment: Spec) -> str:
    """What to call it in a figure.

    >>> title(spec("gaussian", clicks=0.02, switch=500))
    'synthetic, flat spectrum, another theta* after 500 rounds, clicks at 2%'
    """
    asked = dict(environment.settings)
    other = "target" if environment.name == "classification" else "theta*"
    words = {
        "switch": f"another {other} after {asked.get('switch')} rounds",
        "turn": f"theta* turns in {asked.get('turn')} rounds",
        "degrees": f"t({asked.get('degrees')}) noise",
        "outliers": f"{asked.get('outliers', 0.0):.0%} outliers",
        "clicks": f"clicks at {asked.get('clicks', 0.0):.0%}",
    }
    return ", ".join([_plain_title(environment), *(said for name, said in words.items() if name in asked)])


def _plain_title(environment: Spec) -> str:
    if environment.name == "gaussian":
        arms = ", mixed" if environment.get("mixed") else ""
        arms += ", the same arms every round" if environment.get("fixed") else ""
        return f"synthetic, {environment.get('spectrum', 'flat')} spectrum{arms}"
    if environment.name == "rows":
        name = environment.get("data")
        return "random rows" if name == "gaussian" else f"rows of {name}"
    if environment.name == "motley":
        return "nine motley kinds of arms, and one that pays, whose members are alike"
    name = str(environment.get("data"))
    words = [name if name in data.CATALOGUE else Path(name).name]
    words += ["labels as actions"] if environment.name == "contextual" else []
    words += ["columns standardised"] if environment.get("standardize") else []
    return ", ".join(words)


@lru_cache(maxsize=4)
def data_set(name: str, label: str | None = None) -> data.DataSet:
    """The data set, read once in a process."""
    return data.load(name, label=label)


_OF_DATA = {"classification": Classification, "contextual": ContextualClassification}
"""Environments of a data set."""


@lru_cache(maxsize=4)
def _of_data(kind: Any, name: str, label: Any, normalise: Any, standardize: bool) -> Any:
    read = data_set(name, label)
    features = standardised(read.features) if standardize else read.features
    return kind(features, read.labels, name=read.name, normalise=normalise)


@lru_cache(maxsize=2)
def _motley(normalise: Literal["rows", "largest"] | None = "rows") -> Classification:
    """Ten kinds of arms about one centre; members of the last lie near one another, and only they pay."""
    spread = np.array([1.0] * _ALIKE + [0.2])[:, np.newaxis, np.newaxis]
    rows = 3.0 * np.eye(50)[0] + spread * np.random.default_rng(0).standard_normal((_ALIKE + 1, 200, 50))
    labels = np.repeat(np.arange(_ALIKE + 1), 200)
    return Classification(rows.reshape(-1, 50), labels, name="motley", normalise=normalise)


# -- rounds, drawn once -------------------------------------------------------------------------------

MOST_BYTES = 2 << 30
"""Of the arms kept; longer streams are drawn anew each time."""


@lru_cache(maxsize=1)
def stream(environment: Spec, seed: int) -> "CachedRounds":
    """The environment of that seed; the same object as long as nobody asks for another one."""
    return CachedRounds(build(environment, seed))


class CachedRounds(Environment):
    """An environment whose rounds are kept after they were drawn. Everybody gets arms of their own."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.dim, self.name, self.actions = environment.dim, environment.name, environment.actions
        self._kept: list[Round] = []

    def rounds(self, count: int) -> Iterator[Round]:
        """Those of the environment."""
        if count > len(self._kept):
            self._kept = []
            (first,) = self._environment.rounds(1)
            if count * _bytes(first) > MOST_BYTES:
                yield from self._environment.rounds(count)
                return
            self._kept = list(self._environment.rounds(count))
        for drawn in self._kept[:count]:
            yield drawn._replace(arms=drawn.arms.copy())


def _bytes(drawn: Round) -> int:
    arms = drawn.arms
    return int(arms.nbytes if hasattr(arms, "nbytes") else arms.data.nbytes + arms.indices.nbytes)


# -- columns of a data set ----------------------------------------------------------------------------

_FAR_APART = 30.0  # times: pixels, word counts and moments stay below it
_OFTEN = 0.01  # a column that is nearly always zero says little about its scale


def standardised(features: Rows) -> Rows:
    """Every column with mean 0 and deviation 1; a constant column becomes zero.

    Sparse columns are divided by their deviation and not centred, which would fill them.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    if not sparse.issparse(features):
        centred = features - features.mean(axis=0, dtype=np.float64)
        largest = np.abs(features).max(axis=0).astype(np.float64)
        return centred * _inverse(np.sqrt(np.mean(centred**2, axis=0)), largest)
    rows, count = features.tocsr().astype(np.float64), features.shape[0]
    means, present = _column_sums(rows, rows.data) / count, _column_sums(rows, np.ones(rows.nnz))
    squares = _column_sums(rows, (rows.data - means[rows.indices]) ** 2) + (count - present) * means**2
    inverse = _inverse(np.sqrt(squares / count), np.abs(means))
    return sparse.csr_array((rows.data * inverse[rows.indices], rows.indices, rows.indptr), shape=rows.shape)


def said_of_scales(data: DataSet) -> str:
    """A sentence where columns are far apart in scale, naming two of them and the remedy; else nothing.

    The scale of a column is the root mean square of its entries that are not zero.
    """
    scales = _scales(data.features)
    known = np.flatnonzero(scales > 0.0)
    if not len(known):
        return ""
    small, large = (int(known[choose(scales[known])]) for choose in (np.argmin, np.argmax))
    times = scales[large] / scales[small]
    if times < _FAR_APART:
        return ""
    one, other = (column_name(data.columns, column) for column in (large, small))
    other = other.removesuffix(" (counted from 0)")  # said once
    return (
        f"the columns of {data.name} are far apart in scale: entries of {one} are "
        f"about {scales[large]:.3g}, of {other} about {scales[small]:.3g}. The large ones decide nearly "
        "everything; --standardize (standardize=True) brings all columns to one scale"
    )


def _scales(features: Rows) -> Vector:
    """Zero for a column that is nearly always zero."""
    count = features.shape[0]
    if sparse.issparse(features):
        rows = features.tocsr().astype(np.float64)
        present, squares = _column_sums(rows, rows.data != 0.0), _column_sums(rows, rows.data**2)
    else:
        present, squares = np.zeros(features.shape[1]), np.zeros(features.shape[1])
        for start in range(0, count, 4096):  # byte images are not turned to float whole
            part = features[start : start + 4096].astype(np.float64)
            present += (part != 0.0).sum(axis=0)
            squares += (part**2).sum(axis=0)
    often = present >= max(1.0, _OFTEN * count)
    found: Vector = np.sqrt(np.divide(squares, present, out=np.zeros_like(squares), where=often))
    return found


def _column_sums(rows: Rows, values: AnyArray) -> Vector:
    """Of what is stored of a CSR matrix, or of something else in the same places."""
    return np.bincount(rows.indices, weights=values, minlength=rows.shape[1]).astype(np.float64)


def _inverse(deviations: Vector, sizes: Vector) -> Vector:
    """Zero where the deviation is rounding beside the entries: a constant column tells nothing."""
    varies = deviations > 1e-12 * sizes
    found: Vector = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=varies)
    return found
