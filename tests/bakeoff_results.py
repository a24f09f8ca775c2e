"""Made-up results of the bake-off."""

from typing import Any

from benchmarks.bakeoff.contestants import CONTESTANTS, RIVALS
from benchmarks.bakeoff.store import Result

BY_NAME = {one.name: one for one in CONTESTANTS}
RIVAL, OTHER = RIVALS[0].name, RIVALS[1].name


def result(name: str, regret: float = 1.0, target: int = 0, seed: int = 0, **more: Any) -> Result:
    """A run of a contestant as it is set now."""
    one = BY_NAME[name]
    given = {"data": "digits", "condition": "plain", "rounds": 2000, "regret": regret, **more}
    return Result(one.name, one.version, one.setting, target=target, seed=seed, **given)
