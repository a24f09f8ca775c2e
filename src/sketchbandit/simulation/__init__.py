"""Policies play environments: one loop, and everything that names, seeds, tunes and spreads its runs.

``loop`` plays one policy in one environment. ``policies``, ``rules`` and ``environments`` find them by name
(``specs``), ``runs`` performs one run and says what came of it, ``pool`` performs many.
"""

from sketchbandit.simulation.loop import LateRewards, RoundResult, play

__all__ = ["LateRewards", "RoundResult", "play"]
