"""Rankings as JSON: what a decision answers where ``top`` was asked for."""

import json
from collections.abc import Sequence

from sketchbandit.service.choosing import Pick


def ranking_json(picks: Sequence[Pick]) -> str:
    """One object an arm, in order."""
    return json.dumps(
        [
            {
                "position": position,
                "index": pick.index,
                "arm": pick.arm,
                "score": pick.score,
                "mean": pick.mean,
                "propensity": pick.propensity or None,
            }
            for position, pick in enumerate(picks)
        ]
    )
