"""Claims about MNIST: Fig. 3 (c), (d), Fig. 5 and the table of space."""

from sketchbandit.simulation import policies
from sketchbandit.simulation.specs import Spec, spec
from sketchbandit_paper.claims.base import NOT, Claim, Finding, graded, ratio, verdict
from sketchbandit_paper.claims.fronts import Comparison, Point, compare, points
from sketchbandit_paper.definitions.contenders import DBS_FD
from sketchbandit_paper.results import Results

_OFUL = spec("oful")
_INKED = 719  # columns of MNIST with a number other than zero


def _fronts(results: Results, blocks: str, fixed: str) -> tuple[list[Comparison], str]:
    """In time and in space."""
    found = [compare(results, "pareto-mnist", blocks, fixed, column) for column in ("seconds", "peak_bytes")]
    texts = []
    for f, word in zip(found, ("time", "space"), strict=True):
        text = f"in {word}, of {f.total} settings on {fixed}'s front "
        text += f"{f.total - f.met} are cheaper than any {blocks}"
        if f.met:
            text += f", {f.won} are surely worse and {f.lost} surely better at equal cost"
            text += f" (in the mean up to {f.best:.0%} worse)"
        texts.append(text)
    return found, "; ".join(texts)


def _against_soful(results: Results) -> Finding:
    found, ours = _fronts(results, "DBSLinUCB-FD", "SOFUL")
    good = all(f.won == f.met and f.is_broad for f in found) and max(f.best for f in found) >= 0.3
    return Finding(verdict(good, any(f.won > f.lost for f in found)), ours)


def _against_cbscfd(results: Results) -> Finding:
    found, ours = _fronts(results, "DBSLinUCB-RFD", "CBSCFD")
    good = all(f.won >= 0.8 * f.met and f.is_broad for f in found)
    return Finding(verdict(good, any(f.won > f.lost for f in found)), ours)


def _savings(results: Results) -> Finding:
    name = "pareto-mnist"
    exact = results.final(name, _OFUL).mean
    blocks = [m for label, members in results.series(name) if label.startswith("DBSLinUCB") for m in members]
    near = [m for m in blocks if results.final(name, m).mean <= 1.1 * exact]
    if not near:
        return Finding(NOT, "no setting of DBSLinUCB comes within 10 % of OFUL's regret")
    time, space = (
        {m: 1.0 - ratio(results, name, m, _OFUL, column) for m in near}
        for column in ("seconds", "peak_bytes")
    )
    fast, small = max(near, key=lambda m: time[m]), max(near, key=lambda m: space[m])
    ours = (
        f"within 10 % of OFUL's regret {policies.label(fast)} saves {time[fast]:.0%} of the time and "
        f"{space[fast]:.0%} of the space, {policies.label(small)} {time[small]:.0%} and {space[small]:.0%}"
    )
    good = any(time[m] >= 0.6 and space[m] >= 0.8 for m in near)
    some = any(time[m] >= 0.2 and space[m] >= 0.2 for m in near)
    return Finding(verdict(good, some), ours)


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
    name = "mnist-curves"
    ranks = [results.finals(name, members[0], "rank").mean() for _, members in results.series(name)]
    ours = f"the arms chosen have rank {min(ranks):.0f} to {max(ranks):.0f} of 784, and no arms can have"
    ours += f" more than {_INKED}: the other columns are zero in all 70,000 rows"
    full = [rank == 784 for rank in ranks]
    return Finding(verdict(all(full), any(full)), ours)


def _space(results: Results) -> Finding:
    saved = 1.0 - ratio(results, "mnist-space", DBS_FD, _OFUL, "peak_bytes")
    word = "less" if saved > 0 else "more"
    ours = f"DBSLinUCB-FD takes {abs(saved):.0%} {word} space than OFUL at the peak"
    return Finding(graded(saved, saved >= 0.35, saved >= 0.1), ours)


def _space_like_soful(results: Results) -> Finding:
    beside = ratio(results, "mnist-space", DBS_FD, spec("soful", size=150), "peak_bytes")
    ours = f"{beside:.2f} times the space of SOFUL with l = 150"
    return Finding(graded(beside, beside <= 1.25, beside <= 1.6), ours)


CLAIMS = (
    Claim(
        id="front-soful",
        where="Sec. 5, Fig. 3 (c), (d)",
        statement="DBSLinUCB dominates SOFUL, with up to 40 % less regret at comparable cost",
        paper="40 %",
        rule="at equal cost it beats every setting on SOFUL's fronts that can be compared, half of them at "
        "least, with 95 % confidence, and by 30 % somewhere; partly: it beats more than beat it, in time or "
        "space",
        needs=("pareto-mnist",),
        judge=_against_soful,
    ),
    Claim(
        id="front-cbscfd",
        where="Sec. 5, Fig. 3 (c), (d)",
        statement="DBSLinUCB-RFD outperforms CBSCFD across nearly the whole front",
        paper="nearly entire front",
        rule="at equal cost it beats 80 % of the settings on CBSCFD's fronts that can be compared, half of "
        "them at least; partly: it beats more than beat it, in time or space",
        needs=("pareto-mnist",),
        judge=_against_cbscfd,
    ),
    Claim(
        id="savings",
        where="Sec. 5, Fig. 3 (c), (d)",
        statement="DBSLinUCB comes near OFUL's regret with 60 % less time and 80 % less space",
        paper="60 % time, 80 % space",
        rule="both in one setting within 10 % of OFUL's regret; partly: 20 % of both",
        needs=("pareto-mnist",),
        judge=_savings,
        whole=True,
    ),
    Claim(
        id="oful-regret",
        where="Sec. 5",
        statement="OFUL's regret on MNIST after 2000 rounds",
        paper="about 200",
        rule="the mean within 15 %; partly: within 40 %",
        needs=("pareto-mnist",),
        judge=_exact_regret,
        whole=True,
    ),
    Claim(
        id="robust",
        where="Sec. 5, Fig. 3",
        statement="DBSLinUCB stays below 300, SOFUL exceeds 500 with too small a sketch",
        paper="< 300 and > 500",
        rule="both; partly: the worst DBSLinUCB is better than the worst SOFUL",
        needs=("pareto-mnist",),
        judge=_robust,
        whole=True,
    ),
    Claim(
        id="mnist-like-oful",
        where="App., Fig. 5 (a)",
        statement="DBSLinUCB-FD (l0 = 50, epsilon = 8) has regret comparable to OFUL's",
        paper="comparable",
        rule="at most 1.1 times; partly: 1.25",
        needs=("mnist-curves",),
        judge=_like_exact,
    ),
    Claim(
        id="mnist-small-sizes",
        where="App., Fig. 5 (a)",
        statement="SOFUL is substantially worse with l = 20 and l = 100, and like OFUL with l = 150",
        paper="substantially",
        rule="1.25 times OFUL's for both, at most 1.1 for 150; partly: one of the two",
        needs=("mnist-curves",),
        judge=_small_sizes,
        whole=True,
    ),
    Claim(
        id="mnist-time",
        where="App., Fig. 5 (b)",
        statement="DBSLinUCB-FD takes 14 s where OFUL takes 23 s and SOFUL with l = 20 takes 9 s",
        paper="0.61 and 0.39 of OFUL's",
        rule="at most 0.7 of OFUL's time, SOFUL less; partly: the same order",
        needs=("mnist-curves",),
        judge=_time,
        whole=True,
    ),
    Claim(
        id="full-rank",
        where="App., More Experiments on MNIST",
        statement="the matrix of chosen arms has full rank",
        paper="784",
        rule="784 for every method and permutation; partly: for some method. No reading can bear it out",
        needs=("mnist-curves",),
        judge=_full_rank,
        whole=True,
    ),
    Claim(
        id="space",
        where="App., Table 2",
        statement="DBSLinUCB takes 40 % less space than OFUL",
        paper="40 % (2842 against 4802 KB)",
        rule="35 % less; partly: 10 % less",
        needs=("mnist-space",),
        judge=_space,
        whole=True,
    ),
    Claim(
        id="space-like-soful",
        where="App., Table 2",
        statement="DBSLinUCB takes about the space of SOFUL with l = 150",
        paper="1.12 times",
        rule="at most 1.25 times; partly: 1.6",
        needs=("mnist-space",),
        judge=_space_like_soful,
        whole=True,
    ),
)
