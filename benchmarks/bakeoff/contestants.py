"""Who takes part, how each is set, and why so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import sketchbandit as sb
from benchmarks.bakeoff.libraries import LIBRARIES
from benchmarks.bakeoff.streams import Normalise

Kind = Literal["default", "variant", "paper", "rival", "mark"]
DEFAULT, UNIFORM, CEILING = "the default", "uniform", "classifier"
OURS = "sketchbandit"


@dataclass(frozen=True)
class Contestant:
    """One row of the tables."""

    name: str
    kind: Kind
    family: str
    """The library; the best of each family stands in the summary."""
    setting: str
    """As one would write it."""
    why: str
    normalise: Normalise = None
    make: Callable[[int], sb.Policy] | None = None
    """A policy of ours for a dimension."""
    rival: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the worker is told."""

    @property
    def version(self) -> str:
        """Of its library: results of another version are not these. The marks have none."""
        if self.kind == "mark":
            return "-"
        return LIBRARIES[self.family].version if self.family in LIBRARIES else sb.__version__


def _paper() -> list[Contestant]:
    named: dict[str, tuple[str, str, Callable[[int], sb.Policy]]] = {
        "OFUL": ("sb.oful(dim)", "exact", sb.oful),
        "SOFUL": ("sb.soful(dim)", "Frequent Directions", sb.soful),
        "CBSCFD": ("sb.cbscfd(dim)", "spectral compensation", sb.cbscfd),
        "DBSLinUCB-FD": (
            "sb.dbslinucb(dim, compensation=0.0)",
            "dyadic blocks of Frequent Directions",
            lambda dim: sb.dbslinucb(dim, compensation=0.0),
        ),
        "DBSLinUCB-RFD": ("sb.dbslinucb(dim)", "dyadic blocks with compensation", sb.dbslinucb),
        "CBRAP": ("sb.cbrap(dim)", "random projection", sb.cbrap),
    }
    found = []
    for rows, normalise in ((", unit rows", "rows"), (", raw", None)):
        for name, (setting, what, make) in named.items():
            why = f"an algorithm of the paper ({what}), with its defaults"
            why += (
                ", on rows of unit length as the paper has them" if normalise else ", on features as stored"
            )
            found.append(
                Contestant(
                    name + rows,
                    "paper",
                    OURS,
                    setting,
                    why,
                    normalise="rows" if normalise else None,
                    make=make,
                )
            )
    return found


def _variant(name: str, why: str, written: str, **settings: Any) -> Contestant:
    return Contestant(
        f"default, {name}",
        "variant",
        OURS,
        f"sb.adaptive(dim, {written})",
        why,
        make=lambda dim: sb.adaptive(dim, **settings),
    )


def _variants() -> list[Contestant]:
    ucb = "the runner-up: the largest upper confidence bound, by the same deviation of the rewards"
    floor = sb.UCB("auto", floor=0.05)
    return [
        _variant("UCB", ucb, 'beta="auto"', beta="auto"),
        _variant(
            "UCB and a floor",
            "the same with a twentieth of all choices by chance",
            'explore=sb.UCB("auto", floor=0.05)',
            explore=floor,
        ),
        _variant("unit rows", "every arm to length one", 'scaling="rows"', scaling="rows"),
        _variant("unscaled", "features as stored", "scaling=None", scaling=None),
        _variant("no intercept", "without the constant", "intercept=False", intercept=False),
        _variant("ridge 1", "the ridge of the paper's algorithms", "ridge=1.0", ridge=1.0),
    ]


def _rival(name: str, family: str, setting: str, why: str, rival: str = "", **settings: Any) -> Contestant:
    return Contestant(name, "rival", family, setting, why, rival=rival, settings=settings)


def _vowpal(name: str, options: str, why: str) -> Contestant:
    setting = f"--cb_explore_adf {options}"
    return _rival(
        f"VW {name}",
        "Vowpal Wabbit",
        setting,
        f"{why}; zeros left out as its text format has it, all else by default",
        options=options,
    )


def _bayesian(name: str, setting: str, why: str, regressor: str, **settings: Any) -> Contestant:
    why += "; one model for all arms, a constant appended; `sparse=True` where arms are sparse"
    return _rival(f"bayesianbandits {name}", "bayesianbandits", setting, why, regressor, **settings)


RIVALS = [
    _vowpal("squarecb", "--squarecb", "what its wiki calls competitive on its own large comparison"),
    _vowpal("epsilon", "--epsilon 0.02", "its simplest rule, with a small share of chance"),
    _vowpal(
        "rnd",
        "--rnd 3 --epsilon 0.01",
        "random network distillation with three predictors",
    ),
    _vowpal("bag", "--bag 5", "its stand-in for Thompson sampling, with the five models of its wiki"),
    _vowpal("cover", "--cover 3", "online cover, with the three policies of its wiki"),
    _bayesian(
        "normal",
        "ThompsonSampling(), NormalRegressor(alpha=1.0, beta=1.0)",
        "the shared learner of its README",
        "NormalRegressor",
        alpha=1.0,
        beta=1.0,
    ),
    _bayesian(
        "inverse gamma",
        "ThompsonSampling(), NormalInverseGammaRegressor()",
        "the first learner of its README: the noise is learned",
        "NormalInverseGammaRegressor",
    ),
    _bayesian(
        "empirical Bayes",
        "ThompsonSampling(), EmpiricalBayesNormalRegressor()",
        "what it offers to those who do not want to tune priors",
        "EmpiricalBayesNormalRegressor",
    ),
    _rival(
        "contextualbandits LinUCB",
        "contextualbandits",
        "linreg.LinearRegression(use_float=False).predict_ucb(arms, 0.1)",
        "the model inside its LinUCB, shared by all arms, with the alpha of its documentation's example",
        "LinUCB",
        strength=0.1,
        use_float=False,
    ),
    _rival(
        "contextualbandits LinTS",
        "contextualbandits",
        "linreg.LinearRegression(use_float=False).predict_ucb(arms, normal(scale=0.1))",
        'what its LinTS(v_sq=0.1, sample_from="ci") does, shared: it recommends less than 1. Its draw of '
        "coefficients takes the precision for the covariance, and would play nearly at random",
        "LinTS",
        strength=0.1,
        use_float=False,
    ),
    _rival(
        "river Bayesian",
        "river",
        "linear_model.BayesianLinearRegression(), mean + deviation",
        "the model and the bound inside its LinUCBDisjoint, shared; a constant is appended",
        "Bayesian",
    ),
    _rival(
        "river scaled",
        "river",
        "StandardScaler() | LinearRegression(), epsilon 0.02",
        "the pipeline its documentation starts with; as much chance as Vowpal Wabbit has",
        "Scaled",
        epsilon=0.02,
    ),
    _rival(
        "coba LinUCB", "coba", "LinUCBLearner()", "its defaults; it adds a constant itself", "LinUCBLearner"
    ),
    _rival("coba LinTS", "coba", "LinTSLearner()", "its defaults; it adds a constant itself", "LinTSLearner"),
]

CONTESTANTS: list[Contestant] = [
    Contestant(DEFAULT, "default", OURS, "sb.adaptive(dim)", "nothing set, raw features", make=sb.adaptive),
    *_variants(),
    *_paper(),
    *RIVALS,
    Contestant(UNIFORM, "mark", UNIFORM, "any arm", "what learning nothing costs"),
    Contestant(
        CEILING,
        "mark",
        CEILING,
        "LogisticRegression, columns scaled",
        "trained on every label of the data set: about what a linear model can reach",
    ),
]
