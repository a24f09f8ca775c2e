"""Data sets by name, and files of your own: features and labels for online classification.

A named data set is first looked for in the folder ``SKETCHBANDIT_DATA``, then in the user's cache. If it is
in neither, it is downloaded from OpenML, checked and cached. ``digits`` comes with scikit-learn and needs no
download. ``load_open_bandit`` reads logs of the Open Bandit Dataset, for ``sketchbandit.evaluation``.

Examples
--------
>>> digits = load("digits")
>>> digits.features.shape, digits.classes
((1797, 64), 10)

"""

from sketchbandit.data.dataset import DataSet
from sketchbandit.data.lookup import CATALOGUE, VARIABLE, Found, Source, find, load
from sketchbandit.data.open_bandit import OpenBandit, find_open_bandit, load_open_bandit

__all__ = [
    "CATALOGUE",
    "VARIABLE",
    "DataSet",
    "Found",
    "OpenBandit",
    "Source",
    "find",
    "find_open_bandit",
    "load",
    "load_open_bandit",
]
