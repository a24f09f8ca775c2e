"""Who plays in the experiments."""

from sketchbandit.data import CATALOGUE
from sketchbandit.policy.recipes import EXACT_UP_TO, SMALLEST_SIZE
from sketchbandit.simulation.specs import Spec, Value, spec
from sketchbandit_paper.experiment import Series

ADAPTIVE, ANYTIME, NEARLY_EXACT = "Adaptive", "Adaptive, anytime", "Adaptive, ε = 0.001"
"""The labels of the adaptive sketch."""

Labelled = tuple[str, Spec]


def blocks(compensation: int, *settings: tuple[int, float]) -> tuple[Spec, ...]:
    """DBSLinUCB-FD (0) or -RFD (1) with pairs of l0 and epsilon."""
    return tuple(
        spec("dbslinucb", compensation=compensation, size=size, epsilon=epsilon) for size, epsilon in settings
    )


def plain(**settings: Value) -> Spec:
    """The adaptive sketch with what the paper gives every algorithm: arms as they are, and UCB."""
    return spec("adaptive", **{"scaling": None, "intercept": False, "explore": "ucb", **settings})


def adaptive(environment: Spec, **settings: Value) -> Spec:
    """The adaptive sketch, made to be one also where by default it is exact."""
    data = environment.get("data")
    small = data is not None and CATALOGUE[data].dim <= EXACT_UP_TO
    return plain(**({"size": SMALLEST_SIZE} if small else {}), **settings)


def sized(method: str, *sizes: int) -> list[Labelled]:
    """A method of a fixed size, labelled with each of its sizes."""
    return [(f"{method}, l = {size}", spec(method.lower(), size=size)) for size in sizes]


def alone(*policies: Labelled) -> tuple[Series, ...]:
    """A series for each policy."""
    return tuple(Series(label=label, members=(policy,)) for label, policy in policies)


(DBS_FD,), (DBS_RFD,) = blocks(0, (50, 8)), blocks(1, (50, 8))
OFUL = ("OFUL", spec("oful"))
BLOCKS_FD, BLOCKS_RFD = ("DBSLinUCB-FD", DBS_FD), ("DBSLinUCB-RFD", DBS_RFD)
ALL_AT_50 = alone(
    OFUL,
    *((method, spec(method.lower(), size=50)) for method in ("CBRAP", "SOFUL", "CBSCFD")),
    BLOCKS_FD,
    BLOCKS_RFD,
)
