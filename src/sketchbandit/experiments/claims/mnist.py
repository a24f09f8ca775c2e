"""Claims about MNIST: Fig. 3, Fig. 5 and the table of space."""

from itertools import pairwise

import numpy as np

from sketchbandit.experiments.claims.base import Claim, Finding, graded, ratio
from sketchbandit.experiments.claims.fronts import Point, compare, points
from sketchbandit.experiments.definitions import DBS_FD
from sketchbandit.experiments.results import Results
from sketchbandit.experiments.specs import Spec, spec

_OFUL = spec("oful")


def _sweep(results: Results, column: str) -> dict[int, list[float]]:
    """By l0: the means over epsilon, in order of epsilon."""
    return {
        int(members[0].get("size")): [results.final("mnist-epsilon", m, column).mean for m in members]
        for _, members in results.series("mnist-epsilon")
    }


def _trend(results: Results, column: str, word: str, sign: float) -> Finding:
    """Whether a quantity rises (sign 1) or falls (-1) from the smallest epsilon to the largest."""
    lines = _sweep(results, column)
    changes = {size: values[-1] / values[0] - 1.0 for size, values in lines.items()}
    right = [sign * change > 0.02 for change in changes.values()]
    ours = f"from the smallest epsilon to the largest the {word} changes by " + ", ".join(
        f"{change:+.0%} (l0 = {size})" for size, change in changes.items()
    )
    return Finding(graded(changes[50], all(right), any(right)), ours)


def _first_size(results: Results) -> Finding:
    regret, seconds = _sweep(results, "regret"), _sweep(results, "seconds")
    small, large = min(regret), max(regret)
    gain = float(np.mean(regret[large])) / float(np.mean(regret[small])) - 1.0
    price = float(np.mean(seconds[large])) / float(np.mean(seconds[small])) - 1.0
    ours = f"l0 = {large} against {small}, averaged over epsilon: regret {gain:+.0%}, time {price:+.0%}"
    return Finding(graded(gain, gain < -0.02 and price > 0.02, gain < -0.02 or price > 0.02), ours)


def _small_epsilon(results: Results) -> Finding:
    lines = _sweep(results, "regret")
    spread = [max(at) / min(at) - 1.0 for at in zip(*lines.values(), strict=True)]
    ours = (
        f"regret differs by {spread[0]:.0%} across l0 at the smallest epsilon, {spread[-1]:.0%} at the last"
    )
    return Finding(graded(spread[0], spread[0] <= 0.05, spread[0] < spread[-1]), ours)


def _not_monotone(results: Results) -> Finding:
    lines = _sweep(results, "regret")
    falls = {n: [b < a for a, b in pairwise(v)] for n, v in lines.items()}
    count = sum(any(fall) for fall in falls.values())
    ours = f"the mean regret falls somewhere as epsilon grows on {count} of {len(lines)} lines"
    return Finding(graded(count, count > 0, False), ours)


def _against_soful(results: Results) -> Finding:
    found = [compare(results, "pareto-mnist", "DBSLinUCB-FD", "SOFUL", c) for c in ("seconds", "peak_bytes")]
    ours = "; ".join(
        f"at equal {word} it beats {f.won} of {f.met} comparable SOFUL sizes, by {f.best:.0%} at most"
        for f, word in zip(found, ("time", "space"), strict=True)
    )
    dominated = all(f.won == f.met for f in found)
    best = max(f.best for f in found)
    return Finding(graded(best, dominated and best >= 0.3, best >= 0.1), ours)


def _against_cbscfd(results: Results) -> Finding:
    found = [
        compare(results, "pareto-mnist", "DBSLinUCB-RFD", "CBSCFD", c) for c in ("seconds", "peak_bytes")
    ]
    ours = "; ".join(
        f"at equal {word} it beats {f.won} of {f.met} CBSCFD sizes"
        for f, word in zip(found, ("time", "space"), strict=True)
    )
    shares = [f.won / f.met if f.met else 0.0 for f in found]
    return Finding(graded(shares[0], min(shares) >= 0.8, max(shares) >= 0.5), ours)


def _savings(results: Results) -> Finding:
    name = "pareto-mnist"
    exact = points(results, name, "OFUL", "seconds")[0]
    blocks = [m for label, ms in results.series(name) if label.startswith("DBSLinUCB") for m in ms]
    near = [m for m in blocks if results.final(name, m).mean <= 1.1 * exact.regret]
    time = 1.0 - min((ratio(results, name, m, _OFUL, "seconds") for m in near), default=np.nan)
    space = 1.0 - min((ratio(results, name, m, _OFUL, "peak_bytes") for m in near), default=np.nan)
    ours = f"within 10 % of OFUL's regret DBSLinUCB saves {time:.0%} of the time and {space:.0%} of the space"
    return Finding(graded(time, time >= 0.6 and space >= 0.8, time >= 0.2 or space >= 0.2), ours)


def _exact_regret(results: Results) -> Finding:
    found = results.final("pareto-mnist", _OFUL)
    ours = f"OFUL's regret is {found:.0f}"
    share = found.mean / 200.0
    return Finding(graded(share, 0.85 <= share <= 1.15, 0.6 <= share <= 1.4), ours)


def _robust(results: Results) -> Finding:
    def worst(label: str) -> Point:
        return max(points(results, "pareto-mnist", label, "seconds"), key=lambda point: point.regret)

    blocks = max(worst("DBSLinUCB-FD"), worst("DBSLinUCB-RFD"), key=lambda point: point.regret)
    fixed = worst("SOFUL")
    size = fixed.member.get("size")
    ours = f"worst DBSLinUCB {blocks.regret:.0f}, worst SOFUL {fixed.regret:.0f} (l = {size})"
    return Finding(
        graded(blocks.regret, blocks.regret < 300 and fixed.regret > 500, blocks.regret < fixed.regret), ours
    )


def _like_exact(results: Results) -> Finding:
    worse = ratio(results, "mnist-curves", DBS_FD, _OFUL)
    return Finding(graded(worse, worse <= 1.1, worse <= 1.25), f"{worse:.2f} times OFUL's regret")


def _small_sizes(results: Results) -> Finding:
    worse = {n: ratio(results, "mnist-curves", spec("soful", size=n), _OFUL) for n in (20, 100, 150)}
    ours = ", ".join(f"{value:.2f} times OFUL's (l = {size})" for size, value in worse.items())
    bad = [worse[size] >= 1.25 for size in (20, 100)]
    return Finding(graded(worse[20], all(bad) and worse[150] <= 1.1, any(bad)), ours)


def _time(results: Results) -> Finding:
    members: dict[str, Spec] = {"OFUL": _OFUL, "DBS": DBS_FD, "SOFUL": spec("soful", size=20)}
    seconds = {label: results.final("mnist-curves", m, "seconds").mean for label, m in members.items()}
    blocks, fixed = seconds["DBS"] / seconds["OFUL"], seconds["SOFUL"] / seconds["OFUL"]
    ours = (
        f"{seconds['OFUL']:.2f} s OFUL, {seconds['DBS']:.2f} s DBSLinUCB-FD ({blocks:.2f}), "
        f"{seconds['SOFUL']:.2f} s SOFUL l = 20 ({fixed:.2f})"
    )
    return Finding(graded(blocks, blocks <= 0.7 and fixed < blocks, fixed < blocks < 1.0), ours)


def _full_rank(results: Results) -> Finding:
    ranks = results.finals("mnist-curves", _OFUL, "rank")
    ours = f"the arms OFUL chose have rank {ranks.mean():.0f} of 784"
    return Finding(graded(float(ranks.mean()), bool((ranks == 784).all()), bool((ranks == 784).any())), ours)


def _space(results: Results) -> Finding:
    saved = 1.0 - ratio(results, "mnist-space", DBS_FD, _OFUL, "peak_bytes")
    ours = (
        f"DBSLinUCB-FD takes {abs(saved):.0%} {'less' if saved > 0 else 'more'} space than OFUL at the peak"
    )
    return Finding(graded(saved, saved >= 0.35, saved >= 0.1), ours)


def _space_like_soful(results: Results) -> Finding:
    beside = ratio(results, "mnist-space", DBS_FD, spec("soful", size=150), "peak_bytes")
    ours = f"{beside:.2f} times the space of SOFUL with l = 150"
    return Finding(graded(beside, beside <= 1.25, beside <= 1.6), ours)


CLAIMS = (
    Claim(
        "epsilon-costs-regret",
        "Sec. 5, Fig. 3 (a)",
        "a larger epsilon means more regret",
        "increasing",
        "up by over 2 % from the smallest to the largest for every l0; partly: for some",
        ("mnist-epsilon",),
        lambda results: _trend(results, "regret", "regret", 1.0),
    ),
    Claim(
        "epsilon-saves-time",
        "Sec. 5, Fig. 3 (b)",
        "a larger epsilon means less time",
        "decreasing",
        "down by over 2 % from the smallest to the largest for every l0; partly: for some",
        ("mnist-epsilon",),
        lambda results: _trend(results, "seconds", "time", -1.0),
    ),
    Claim(
        "first-size",
        "Sec. 5, Fig. 3",
        "a larger l0 means less regret and more time",
        "-",
        "both, by over 2 % on average; partly: one of the two",
        ("mnist-epsilon",),
        _first_size,
    ),
    Claim(
        "small-epsilon-forgets-size",
        "Sec. 5, Fig. 3 (a)",
        "for very small epsilon the regret hardly depends on l0",
        "nearly identical",
        "within 5 % at the smallest epsilon; partly: closer there than at the largest",
        ("mnist-epsilon",),
        _small_epsilon,
    ),
    Claim(
        "not-monotone",
        "Sec. 5, Fig. 3 (a)",
        "the regret need not increase with epsilon",
        "not for epsilon = 2, 4",
        "it falls somewhere on some line",
        ("mnist-epsilon",),
        _not_monotone,
    ),
    Claim(
        "front-soful",
        "Sec. 5, Fig. 3 (c), (d)",
        "DBSLinUCB dominates SOFUL, with up to 40 % less regret at comparable cost",
        "40 %",
        "beats every comparable size, by 30 % somewhere; partly: by 10 % somewhere",
        ("pareto-mnist",),
        _against_soful,
    ),
    Claim(
        "front-cbscfd",
        "Sec. 5, Fig. 3 (c), (d)",
        "DBSLinUCB-RFD outperforms CBSCFD across nearly the whole front",
        "nearly entire front",
        "beats 80 % of the comparable sizes in time and in space; partly: half in one of them",
        ("pareto-mnist",),
        _against_cbscfd,
    ),
    Claim(
        "savings",
        "Sec. 5, Fig. 3 (c), (d)",
        "DBSLinUCB comes near OFUL's regret with 60 % less time and 80 % less space",
        "60 % time, 80 % space",
        "both, within 10 % of OFUL's regret; partly: 20 % of one of them",
        ("pareto-mnist",),
        _savings,
    ),
    Claim(
        "oful-regret",
        "Sec. 5",
        "OFUL's regret on MNIST after 2000 rounds",
        "about 200",
        "within 15 %; partly: within 40 %",
        ("pareto-mnist",),
        _exact_regret,
    ),
    Claim(
        "robust",
        "Sec. 5, Fig. 3",
        "DBSLinUCB stays below 300, SOFUL exceeds 500 with too small a sketch",
        "< 300 and > 500",
        "both; partly: the worst DBSLinUCB is better than the worst SOFUL",
        ("pareto-mnist",),
        _robust,
    ),
    Claim(
        "mnist-like-oful",
        "App., Fig. 5 (a)",
        "DBSLinUCB-FD (l0 = 50, epsilon = 8) has regret comparable to OFUL's",
        "comparable",
        "at most 1.1 times; partly: 1.25",
        ("mnist-curves",),
        _like_exact,
    ),
    Claim(
        "mnist-small-sizes",
        "App., Fig. 5 (a)",
        "SOFUL is substantially worse with l = 20 and l = 100, and like OFUL with l = 150",
        "substantially",
        "1.25 times OFUL's for both, at most 1.1 for 150; partly: one of the two",
        ("mnist-curves",),
        _small_sizes,
    ),
    Claim(
        "mnist-time",
        "App., Fig. 5 (b)",
        "DBSLinUCB-FD takes 14 s where OFUL takes 23 s and SOFUL with l = 20 takes 9 s",
        "0.61 and 0.39 of OFUL's",
        "at most 0.7 of OFUL's time, SOFUL less; partly: the same order",
        ("mnist-curves",),
        _time,
    ),
    Claim(
        "full-rank",
        "App., More Experiments on MNIST",
        "the matrix of chosen arms has full rank",
        "784",
        "784 for every permutation",
        ("mnist-curves",),
        _full_rank,
    ),
    Claim(
        "space",
        "App., Table 1",
        "DBSLinUCB takes 40 % less space than OFUL",
        "40 % (2842 against 4802 KB)",
        "35 % less; partly: 10 % less",
        ("mnist-space",),
        _space,
    ),
    Claim(
        "space-like-soful",
        "App., Table 1",
        "DBSLinUCB takes about the space of SOFUL with l = 150",
        "1.12 times",
        "at most 1.25 times; partly: 1.6",
        ("mnist-space",),
        _space_like_soful,
    ),
)
