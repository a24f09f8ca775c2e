"""Reading a sketch or a policy from its file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from sketchbandit import files
from sketchbandit.errors import FileError, InputTypeError, SketchBanditError
from sketchbandit.policy import PerAction, Policy
from sketchbandit.policy.learner import POLICIES
from sketchbandit.serialization import Stored
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.base import SKETCHES

Wanted = TypeVar("Wanted", bound=Stored)


@overload
def load(path: str | Path, *, base: Any = ...) -> Sketch | Policy | PerAction: ...


@overload
def load(path: str | Path, expected: Callable[..., Wanted], *, base: Any = ...) -> Wanted: ...


def load(path: str | Path, expected: Any = Stored, **extra: Any) -> Any:
    """Read the sketch or policy that ``save`` wrote. It continues as if it had never been saved.

    Parameters
    ----------
    path : str or Path
        The file.
    expected : class, optional
        What the file must hold, for instance ``sb.Sketch`` or ``sb.LinUCB``. Anything else raises FileError.
        With it, type checkers know the type of the result.
    base : callable, optional
        The ``base`` of a DyadicBlockSketch, if it was made with one. Files hold no code.

    Returns
    -------
    Sketch, Policy or PerAction

    Raises
    ------
    FileError
        If the file is damaged, was not written by sketchbandit, or was written by a newer version.

    Examples
    --------
    >>> import tempfile, sketchbandit as sb
    >>> sketch = sb.FrequentDirections(9, size=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sketch.save(f"{folder}/s.safetensors")
    ...     load(f"{folder}/s.safetensors")
    <FrequentDirections(dim=9, size=2, compensation=0.0, dtype='float64'): 0 rows seen, 0 kept, error <= 0>

    """
    unknown = set(extra) - {"base"}
    if unknown:
        raise InputTypeError(f"load takes a path and base=..., got {', '.join(sorted(unknown))}")
    if not isinstance(expected, type):
        raise InputTypeError(f"expected must be a class such as sketchbandit.LinUCB, got {expected!r}")
    contents = files.read(Path(path))
    cls: type[Stored] = (POLICIES if contents.kind in POLICIES else SKETCHES).of_kind(contents.kind)
    if not issubclass(cls, expected):
        raise FileError(f"{path} holds {cls.__name__}, not {expected.__name__}")
    try:
        return cls.undump(contents.scalars, contents.arrays, **extra)
    except SketchBanditError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} does not hold a valid {cls.__name__}: {error!r}") from error
