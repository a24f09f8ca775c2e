"""All exceptions that the library raises on purpose.

    SketchBanditError
    ├── InputError         (ValueError)  a value that cannot be used
    │   └── RowError                     one row of many that cannot be used
    ├── InputTypeError     (TypeError)   an object of the wrong type
    ├── MergeError         (ValueError)  sketches or policies whose settings differ
    │   └── MergeKindError (TypeError)   objects of different kinds
    └── FileError          (ValueError)  a file that is damaged, foreign or newer

    SketchTooSmallWarning  (UserWarning) a fixed sketch size with which the regret bound is linear
    └── TooFewDigitsWarning              arms so long that float64 has too few digits
    WorldChangedWarning    (UserWarning) predictions that have become worse than before (drift)

Each message names the value seen and what to do. A call that raises one of these errors has changed nothing.
Warnings are given after the work is done, even if they are turned into errors.
"""

__all__ = [
    "FileError",
    "InputError",
    "InputTypeError",
    "MergeError",
    "MergeKindError",
    "RowError",
    "SketchBanditError",
    "SketchTooSmallWarning",
    "TooFewDigitsWarning",
    "WorldChangedWarning",
]


class SketchBanditError(Exception):
    """Base class of all errors below. Catch it to catch them all.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> try:
    ...     sb.oful(2).update([1.0, 0.0], float("nan"))
    ... except sb.SketchBanditError as error:
    ...     print(error)
    the reward is nan; rewards must be finite

    """


class InputError(SketchBanditError, ValueError):
    """A value cannot be used: wrong shape, NaN, or out of range."""


class RowError(InputError):
    """One row of many cannot be used.

    Attributes
    ----------
    noun : str
        What the message calls the row, such as "arm".
    row : int
        The index of the row in the input.
    why : str
        What is wrong with it.

    """

    def __init__(self, noun: str, row: int, why: str) -> None:
        super().__init__(noun, row, why)
        self.noun, self.row, self.why = noun, row, why

    def __str__(self) -> str:
        return f"{self.noun} {self.row} {self.why}"


class InputTypeError(SketchBanditError, TypeError):
    """An object has the wrong type, for instance an object array, or a float instead of a count."""


class MergeError(SketchBanditError, ValueError):
    """Two sketches or policies cannot be merged, because their dimensions or settings differ."""


class MergeKindError(MergeError, TypeError):
    """Two objects of different kinds cannot be merged."""


class FileError(SketchBanditError, ValueError):
    """A file was not written by sketchbandit, is damaged, or was written by a newer version."""


class SketchTooSmallWarning(UserWarning):
    """A sketch of fixed size loses so much that the regret bound of the policy is linear."""


class TooFewDigitsWarning(SketchTooSmallWarning):
    """The arms are so long that rounding alone exceeds the ridge, or the promised error of the sketch."""


class WorldChangedWarning(UserWarning):
    """The predictions of a policy have become worse than before (drift), by more than noise explains."""
