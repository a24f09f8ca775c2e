"""Every exception the library raises on purpose.

    SketchBanditError
    ├── InputError         (ValueError)  a value that cannot be used
    │   └── RowError                     one row of many that cannot be used
    ├── InputTypeError     (TypeError)   a thing of the wrong type
    ├── MergeError         (ValueError)  sketches whose settings differ
    │   └── MergeKindError (TypeError)   sketches of different kinds
    └── FileError          (ValueError)  a file that is damaged, foreign or newer

    SketchTooSmallWarning  (UserWarning) a fixed sketch size whose error makes the regret bound vacuous
    └── TooFewDigitsWarning              arms so long that float64 has no digits for the ridge or the promise
    WorldChangedWarning    (UserWarning) predictions that have become worse than they were

Each message quotes the value seen and names the remedy. A call that raises one of these errors has
changed nothing. (The warning comes when everything is done, also where warnings are turned into errors.)
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
    """Base of everything below: catch this to catch them all."""


class InputError(SketchBanditError, ValueError):
    """A value that cannot be used: wrong shape, NaN, out of range."""


class RowError(InputError):
    """One row of many cannot be used: ``row`` is its index in what was given, ``why`` says what is wrong."""

    def __init__(self, noun: str, row: int, why: str) -> None:
        super().__init__(noun, row, why)
        self.noun, self.row, self.why = noun, row, why

    def __str__(self) -> str:
        return f"{self.noun} {self.row} {self.why}"


class InputTypeError(SketchBanditError, TypeError):
    """A thing of the wrong type: an object array, a float where a count is meant."""


class MergeError(SketchBanditError, ValueError):
    """Two sketches whose dimension or settings differ cannot be merged."""


class MergeKindError(MergeError, TypeError):
    """Two sketches of different kinds cannot be merged."""


class FileError(SketchBanditError, ValueError):
    """A file that is not ours, is damaged, or was written by a newer version."""


class SketchTooSmallWarning(UserWarning):
    """A fixed-size sketch loses so much that the policy's regret bound is linear."""


class TooFewDigitsWarning(SketchTooSmallWarning):
    """The arms are so long that rounding alone exceeds the ridge, or the error that the sketch promises."""


class WorldChangedWarning(UserWarning):
    """The predictions of a policy have become worse than they were, beyond noise and widths."""
