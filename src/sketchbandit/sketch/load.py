"""Reading a sketch back from its file."""

from pathlib import Path
from typing import Any

from sketchbandit import files
from sketchbandit.errors import FileError, SketchBanditError
from sketchbandit.sketch.base import Sketch, sketch_class


def load(path: str | Path, **extra: Any) -> Sketch:
    """The sketch that ``save`` wrote to ``path``; continuing it equals never having stopped, to the bit.

    A DyadicBlockSketch with a ``base`` of your own needs it again, because files hold no code:
    ``load(path, base=...)``. Damaged, foreign and newer files raise FileError.

    >>> import tempfile
    >>> sketch = sketch_class("frequent-directions")(3, size=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sketch.save(f"{folder}/s.safetensors")
    ...     load(f"{folder}/s.safetensors")
    <FrequentDirections(dim=3, size=2, compensation=0.0, dtype='float64'): 0 rows seen, 0 kept, error <= 0>
    """
    contents = files.read(Path(path))
    cls = sketch_class(contents.kind)
    try:
        return cls._undump(contents.scalars, contents.arrays, **extra)
    except SketchBanditError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} does not hold a valid {cls.__name__}: {error!r}") from error
