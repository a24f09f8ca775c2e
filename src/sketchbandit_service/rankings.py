"""Writes rankings as JSON, for decisions with ``top``."""

from json.encoder import encode_basestring as quoted  # not for ASCII alone: UTF-8 is the shorter

from sketchbandit_service.choosing import Ranking
from sketchbandit_service.offered import Offered
from sketchbandit_service.politeness import politely

_SLICE = 500  # arms; they take about a millisecond


def ranking_json(ranking: Ranking, offered: Offered) -> str:
    """One object per arm, in order. Long rankings are written in slices, so other threads get a turn."""
    starts = range(0, len(ranking.index), _SLICE)
    slices = starts if len(starts) == 1 else politely(starts)
    return f"[{','.join(_some(ranking, offered, at) for at in slices)}]"


def _some(ranking: Ranking, offered: Offered, start: int) -> str:
    rows = zip(*(column[start : start + _SLICE].tolist() for column in ranking), strict=True)
    return ",".join(
        f'{{"position":{position},"index":{index},"arm":{_name(offered.name(index))},"score":{score!r},'
        f'"mean":{mean!r},"propensity":{propensity or "null"}}}'
        for position, (index, score, mean, _, propensity) in enumerate(rows, start)
    )


def _name(name: str | None) -> str:
    return "null" if name is None else quoted(name)
