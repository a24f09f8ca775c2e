"""Writes the page of the documentation from the results."""

import platform
from pathlib import Path

from benchmarks.bakeoff import tables
from benchmarks.bakeoff.board import Board
from benchmarks.bakeoff.figure import save_figure
from benchmarks.bakeoff.judging import judge

_HEAD = """# The bake-off

What does `sb.adaptive(dim)` earn on raw features, with nothing tuned? Here it plays beside other libraries,
each set as its documentation recommends. On how many data sets each claim holds:
"""
_GAME = """```sh
make bakeoff    # plays what is missing, measures speed, writes this page
.venv/bin/python -m benchmarks.bakeoff --help
```

## The game

- Each round offers one sample of each label, in random order. The sample of the target label pays 1, the
  others 0.
- Everybody sees the same {rounds:,} rounds. Every label is the target in turn, with {seeds} seeds.
- Features are as stored. The paper's algorithms also play with rows of unit length.
- Regret is the number of rewards missed.
- *Late*: a reward comes 100 rounds after its choice.
- *Times 100*: rewards are 100 instead of 1, and regret is divided by 100.

Two marks show what is possible. `uniform` learns nothing. `classifier` is a logistic regression that was
trained on every label of the data set: about what a linear model can reach.
"""
_SUMMARY = """Each cell has the mean regret. In brackets: which setting is the best, and the default's regret
divided by that of this setting, on the runs that both played. Below 1 the default is better. By our rule no
run of the default may lose more than 0.6 times what a uniform choice loses.
"""
_RULES = """The rules were fixed before the run. They are in `benchmarks/bakeoff/judging.py`. A rival is
compared on the runs that it finished.
"""
_MEASURES = """| column | what it is |
| --- | --- |
| regret | the mean ± half of a 95 % interval (Student's t over the runs) |
| worst | the regret of the worst run |
| ÷ uniform | the mean divided by that of `uniform` |
| late, times 100 | the mean regret under these conditions |
| rounds/s | choosing and learning, and turning the arms into what the library takes; one thread, {machine} |
| KiB | the arrays of our policies, the table of weights of Vowpal Wabbit, the pickled model of the others |

All but the default have a time limit for each data set and condition. A method that reaches it skips its
remaining runs, and the number of runs is given. All targets of the first seed come first. The paper's
algorithms and the variants play only the plain game.
"""
_VARIANTS = """In each row one thing is changed. Cells have the mean regret, and the worst run in brackets.

- The default's numbers (a warm-up of 200 requests, the constant, the bound of three deviations, the ridge,
  0.15 deviations of the rewards) were chosen on other seeds of these data sets. So its figures here are a
  little too good.
- UCB is the runner-up. It is as good on most data sets, but now and then it repeats itself for a thousand
  rounds.
- The constant costs a little here. With a constant of 0.3, rewards of 10 and 11 were hardly learned from.
"""


def write_page(board: Board, page: Path, *, rounds: int, seeds: int) -> list[Path]:
    """Write the page and its figure; returns both paths."""
    image = page.parent / "images" / "bakeoff" / "bakeoff.png"
    save_figure(board, image)
    machine = f"Python {platform.python_version()} on {platform.machine()}"
    found = judge(board)
    parts = [
        _HEAD,
        tables.answer(found),
        _GAME.format(rounds=rounds, seeds=seeds),
        "## Summary\n",
        _SUMMARY,
        tables.summary(board),
        f"![Mean regret on every data set, with every run]({image.relative_to(page.parent)})\n",
        "## Claims\n",
        _RULES,
        tables.verdicts(found),
        "## The default and its variants\n",
        _VARIANTS,
        tables.variants(board),
        "## Every data set\n",
        _MEASURES.format(machine=machine),
    ]
    for data in board.sets():
        parts += [f"### {data}\n", tables.details(board, data)]
    parts += ["## Who could not play\n", tables.failures(board)]
    parts += ["## Settings\n", "Nothing was tuned for anybody.\n", tables.settings()]
    page.write_text("\n".join(parts))
    return [page, image]
