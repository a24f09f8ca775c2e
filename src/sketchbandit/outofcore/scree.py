"""The scree plot: singular values with the band in which the true ones lie."""

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from sketchbandit.drawing import COLOURS, STYLE
from sketchbandit.sketch import Sketch, spectrum


def draw(sketch: Sketch, title: str) -> Figure:
    """sigma_i over i, on log axes: what the sketch holds, and up to where the truth may lie."""
    found = spectrum(sketch)
    alive = found.sigma_sq > 0.0
    lower, upper = np.sqrt(found.sigma_sq[alive]), np.sqrt(found.upper[alive])
    index = np.arange(1, len(lower) + 1)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.0, 3.8), layout="constrained")
        axis = figure.subplots()
        if sketch.error_bound > 0.0:
            band = "certified: the true one is in here"
            axis.fill_between(index, lower, upper, color=COLOURS[0], alpha=0.25, lw=0, label=band)
        line = "singular value of the sketch"
        axis.plot(index, lower, color=COLOURS[0], marker="o", ms=2.5, lw=1.0, label=line)
        if sketch.error_bound > 0.0:
            floor = "square root of e: smaller ones may be missing"
            axis.axhline(np.sqrt(sketch.error_bound), color=COLOURS[1], lw=0.8, ls="--", label=floor)
        axis.set_yscale("log")
        if len(lower) > 20:
            axis.set_xscale("log")
        axis.set_xlabel("i: the largest, the second largest, ...")
        axis.set_ylabel("singular value")
        axis.set_title(title)
        axis.legend(frameon=False, fontsize=8)
    return figure
