"""What ``policy.health()`` says of a sketch, in words."""

from sketchbandit.sketch import Sketch

_SMALL = 128  # dimensions, whose matrix is nothing to warn of


def digits_sentence(sketch: Sketch, ridge: float) -> str:
    """What to say where there are too few digits; nothing where there are enough."""
    error, most = sketch.error_bound, sketch.error_limit
    certified = sketch.rounding
    rounding = sketch.uncounted
    name, remedy = "float64", ""
    if certified > max(ridge, error / 2.0):  # the certificate is mostly rounding
        name, rounding = sketch.dtype.name, certified
        remedy = ", or use float64" if name == "float32" else ""
    elif rounding <= max(error, ridge) and (most == 0.0 or rounding <= most):
        return ""
    beside = f"the ridge, {ridge:.4g}" if rounding > ridge else f"the error that is promised, {most:.4g}"
    return (
        f"The arms are too long for {name}: rounding alone may change the sum of their squares by "
        f"{rounding:.4g}, more than {beside}, so that neither bound nor radius can be relied on; scale the "
        f"columns to similar lengths of about one{remedy}."
    )


def bounded_sentence(sketch: Sketch, error: float, most: float) -> str:
    """An error that is bounded."""
    if most == 0.0:
        return "The sketch is exact: nothing is lost and the regret is that of OFUL."
    sentence = (
        f"The spectral error is at most {error:.4g} and never exceeds {most:.4g}: the regret stays sublinear."
    )
    if sketch.is_dense and sketch.dim > _SMALL:
        could_say = getattr(sketch, "horizon", 0) is None and getattr(sketch, "order", None) is None
        sentence += (
            " To keep that promise the sketch has become exact, a matrix of dim² numbers; where that is too "
            f"much, allow a larger epsilon{' (inflation), or say the horizon' if could_say else ''}."
        )
    return sentence


def growing_sentence(error: float, order: float) -> str:
    """An error that grows slowly enough."""
    return (
        f"The spectral error is at most {error:.4g} and grows no faster than t^{order:.3g}: "
        "the regret stays sublinear."
    )


def world_sentence(noticed: int) -> str:
    """Predictions that have become worse."""
    return (
        f"The world has changed, noticed after {noticed} rounds: the predictions have become worse than they "
        "were, by more than noise and widths explain. Start again by policy.reset(), or make the policy with "
        "forget=, such as forget=1000, the half-life in rounds."
    )


def following_sentence(noticed: int) -> str:
    """The same where the policy forgets."""
    return f"The world has changed, noticed after {noticed} rounds; the policy forgets, and follows."


def forgetting_sentence(sketch: Sketch, error: float) -> str:
    """An error that stays bounded because it is forgotten."""
    return (
        f"{_named(sketch)} has lost at most {error:.4g} of the {sketch.effective_count:.4g} rounds that it "
        "remembers, and forgets that too: the error stays bounded."
    )


def too_small(sketch: Sketch, error: float) -> str:
    """A size that makes the bound linear."""
    return (
        f"{_named(sketch)} is too small for this stream: its spectral error, {error:.4g}, grows so fast that "
        "the regret bound is linear; use a larger size, or adaptive, whose error is bounded (and scale the "
        "arms to about length one, or the ridge to their squared length)."
    )


def slowly_linear(sketch: Sketch, error: float, rounds: int) -> str:
    """The same with a small factor."""
    return (
        f"The spectral error of {_named(sketch)}, {error:.4g}, grows in proportion to t, by "
        f"{error / rounds:.2g} a round: the regret bound is linear, though with a small factor; a larger "
        "size lowers it, adaptive bounds the error."
    )


def bearable(sketch: Sketch, error: float, exponent: float) -> str:
    """An error that the bound can bear so far."""
    if error == 0.0:
        return f"{_named(sketch)} has lost nothing so far: the regret is that of OFUL."
    return (
        f"{_named(sketch)} has lost at most {error:.4g} (t^{exponent:.2f}), which the regret bound can bear."
    )


def _named(sketch: Sketch) -> str:
    return f"{type(sketch).__name__} of size {sketch.size}"
