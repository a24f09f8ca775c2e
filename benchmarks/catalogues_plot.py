"""Draw what benchmarks.catalogues has measured: ``python -m benchmarks.catalogues_plot``.

It reads docs/catalogues.json, which holds the figures of both machines. It writes docs/images/catalogues.png.
"""

import json
from pathlib import Path

import matplotlib as mpl

from sketchbandit.drawing import COLOURS, STYLE, panels

DOCS = Path(__file__).parents[1] / "docs"
LINES = {"arms @ theta": "arms @ theta", "select": "select", "select, half": "select, with a short copy"}


def main() -> None:
    """Milliseconds over arms: a choice beside the product alone, and what the GPU's memory allows."""
    told = json.loads((DOCS / "catalogues.json").read_text())
    with mpl.rc_context(STYLE):
        figure, axes = panels(2)
        for axis, place in zip(axes, ("cpu", "gpu"), strict=True):
            lines = told[place]["lines"]
            counts = [line["arms"] for line in lines]
            for (name, label), colour in zip(LINES.items(), COLOURS, strict=False):
                axis.loglog(counts, [line[name] for line in lines], "o-", color=colour, label=label)
            if speed := told[place].get("terabytes_per_second"):
                limit = [line["arms"] * line["dim"] * 4 / (speed * 1e9) for line in lines]
                axis.loglog(counts, limit, ":", color="grey", label=f"one read at {speed} TB/s")
            axis.set(title=told[place]["machine"], xlabel="arms of 768 numbers, float32")
            axis.legend(frameon=False)
        axes[0].set_ylabel("milliseconds for a choice")
        figure.savefig(DOCS / "images" / "catalogues.png", dpi=130)


if __name__ == "__main__":
    main()
