"""The matrix-approximation experiment and the command line around it."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import sketchbandit
from sketchbandit.cli.app import app
from sketchbandit.experiments import data, figures
from sketchbandit.experiments.matrix_approximation import Settings, matrix, measure, steps
from sketchbandit.linalg import spectral_error
from sketchbandit.sketch import FrequentDirections

SMALL = Settings(
    count=120, dim=40, fd_size=8, dbs_size=4, epsilons=(2.0, 5.0), compared_epsilon=5.0, every=30
)
runner = CliRunner()


def test_the_defaults_are_the_papers() -> None:
    """n = 1250, d = 500, l = 50, l0 = 16, epsilon in {5, 10, 20}."""
    settings = Settings()
    assert (settings.count, settings.dim, settings.fd_size, settings.dbs_size) == (1250, 500, 50, 16)
    assert settings.epsilons == (5.0, 10.0, 20.0)


@pytest.mark.parametrize("name", ["gaussian", "digits"])
def test_measurements_are_true(name: str) -> None:
    """Error <= certificate <= bound in every row, and the error is that of an independent run."""
    rows = list(measure(name, SMALL))
    assert len(rows) == steps(SMALL) / 2
    for m in rows:
        assert m.error <= m.certificate + 1e-12 * m.t
        assert m.certificate <= m.bound + 1e-12 * m.t
    stream = matrix(name, SMALL)
    sketch = FrequentDirections(stream.shape[1], size=8)
    sketch.update(stream[:60])
    (at_60,) = [m for m in rows if m.sketch == "FD, l = 8" and m.t == 60]
    assert at_60.error == pytest.approx(spectral_error(stream[:60], sketch.rows))
    assert at_60.certificate == sketch.error_bound


def test_matrices_are_normalised_and_repeatable() -> None:
    """Unit rows without zero rows; the seed decides."""
    for one, same, other in (
        [data.gaussian(50, 7, seed) for seed in (1, 1, 2)],
        [data.digits(50, seed) for seed in (1, 1, 2)],
    ):
        assert np.allclose(np.linalg.norm(one, axis=1), 1.0)
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)
    assert len(data.normalised(np.array([[0.0, 0.0], [3.0, 4.0]]))) == 1


def test_figure_has_the_papers_panels(tmp_path: Path) -> None:
    """Two panels a matrix, every series drawn and labelled, PNG and SVG the same from run to run."""
    rows = [m for name in SMALL.matrices for m in measure(name, SMALL)]
    figure = figures.matrix_approximation(rows, SMALL)
    assert len(figure.axes) == 4
    labels = {text.get_text() for text in figure.axes[1].texts}
    assert labels == {"FD, l = 8", "DBS, ε = 5"}
    first = [path.read_bytes() for path in figures.save(figure, tmp_path / "one" / "figure")]
    again = figures.save(figures.matrix_approximation(rows, SMALL), tmp_path / "two" / "figure")
    assert first == [path.read_bytes() for path in again]
    pixels = imread(again[0])
    assert pixels.std() > 0.01, "an empty picture"


def test_reproduce_end_to_end(tmp_path: Path) -> None:
    """The command that `make run` calls writes the figure and a table whose every row is honest."""
    done = runner.invoke(app, ["reproduce", "matrix-approximation", "--out", str(tmp_path), "--every", "625"])
    assert done.exit_code == 0, done.output
    assert "DBS, ε = 20" in done.output
    with (tmp_path / "matrix-approximation.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["matrix"] for row in table} == {"gaussian", "digits"}
    for row in table:
        assert (
            float(row["error"]) <= float(row["certificate"]) * (1 + 1e-9) <= float(row["bound"]) * (1 + 2e-9)
        )
    assert (tmp_path / "matrix-approximation.png").stat().st_size > 10_000


def test_command_line_manners() -> None:
    """Help with an example, the version, and an error that lists what is known."""
    assert "Example" in runner.invoke(app, ["reproduce", "--help"]).output
    assert runner.invoke(app, ["--version"]).output.strip() == sketchbandit.__version__
    wrong = runner.invoke(app, ["reproduce", "everything"])
    assert wrong.exit_code == 2
    assert "matrix-approximation" in wrong.output


def test_an_unwritable_folder_is_said_before_any_work(tmp_path: Path) -> None:
    """A file in the way of --out is an error at once, without a traceback."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = runner.invoke(app, ["reproduce", "--out", str(tmp_path / "file" / "out")])
    assert done.exit_code == 2
    assert "cannot write" in done.output


def test_the_laws_say_which_extra_they_need() -> None:
    """`import sketchbandit.testing` without hypothesis is an instruction."""
    code = "import sys; sys.modules['hypothesis'] = None; import sketchbandit.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'sketchbandit[testing]'" in done.stderr


def test_without_the_extra_the_command_says_what_to_install() -> None:
    """A missing typer is an instruction, not a traceback."""
    code = "import sys; sys.modules['typer'] = None; from sketchbandit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'sketchbandit[experiments]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_python_dash_m() -> None:
    """`python -m sketchbandit` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "sketchbandit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == sketchbandit.__version__
