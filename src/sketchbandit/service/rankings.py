"""Rankings as JSON: what a decision answers where ``top`` was asked for."""

import json

from sketchbandit.service.choosing import Ranking
from sketchbandit.service.offered import Offered
from sketchbandit.service.politeness import politely

_SLICE = 500  # arms: a millisecond or so


def ranking_json(ranking: Ranking, offered: Offered) -> str:
    """One object an arm, in order. Long ones are written in slices, so that other threads get their turn."""
    starts = range(0, len(ranking.index), _SLICE)
    slices = starts if len(starts) == 1 else politely(starts)
    return f"[{','.join(_some(ranking, offered, at) for at in slices)}]"


def _some(ranking: Ranking, offered: Offered, start: int) -> str:
    rows = zip(*(column[start : start + _SLICE].tolist() for column in ranking), strict=True)
    told = [
        {
            "position": position,
            "index": index,
            "arm": offered.name(index),
            "score": score,
            "mean": mean,
            "propensity": propensity or None,
        }
        for position, (index, score, mean, _, propensity) in enumerate(rows, start)
    ]
    return json.dumps(told, separators=(",", ":"))[1:-1]
