"""Dense arms in the form that the loops read: an array and its scaling (the lens)."""

from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector

AS_IS, ROWS, COLUMNS = 0.0, 1.0, 2.0
KIND, BOUND, CONSTANT, HEAD = 0, 1, 2, 3
PLAIN: Vector = np.zeros(0)
"""The lens of arms without scaling."""
PLAIN.flags.writeable = False  # as every lens: loops are compiled for one kind of array


class View(NamedTuple):
    """The arms z of a policy: the rows x of ``array``, each read through ``lens``. Nothing is copied.

    A lens has a head of three numbers: the kind, the bound and the constant. ROWS: z = x / |x|. COLUMNS:
    z = (x - centre)·factor, no entry beyond the bound; centre and factor follow the head. The constant is
    appended to z, unless it is 0.
    """

    array: AnyArray
    lens: Vector = PLAIN
