"""What is known about each data set: its origin, its licence, and its shape."""

from typing import NamedTuple

from sketchbandit.data.dataset import DataSet
from sketchbandit.errors import FileError


class Source(NamedTuple):
    """One named data set."""

    name: str
    title: str
    licence: str
    rows: int
    dim: int
    classes: int
    openml: int | None
    """Its OpenML id; None if OpenML does not have it."""
    dtype: str
    digest: str
    """``DataSet.digest`` of the copy that the reproduction was made with."""
    elsewhere: str = ""
    """For a data set that is not on OpenML: its origin, and how to make the file."""

    @property
    def embedded(self) -> bool:
        """Whether it comes with a package and needs no file."""
        return self.name == "digits"

    def check(self, data: DataSet, where: str) -> None:
        """Raise unless the data have the right shape and classes."""
        if (data.features.shape, data.classes) != ((self.rows, self.dim), self.classes):
            raise FileError(
                f"{where} is not {self.name}: it has shape {data.features.shape} and {data.classes} classes, "
                f"not {(self.rows, self.dim)} and {self.classes}"
            )

    @property
    def file(self) -> str:
        """The file name in ``SKETCHBANDIT_DATA`` and in the cache."""
        return f"{self.name}.npz"

    @property
    def origin(self) -> str:
        """The origin, in a few words."""
        if self.openml is not None:
            return f"OpenML {self.openml}"
        return "scikit-learn" if self.embedded else "UCI 218"


_FARM_ADS = (
    "unpack farm-ads-vect from the UCI repository (data set 218), then X, y = sklearn.datasets."
    "load_svmlight_file('farm-ads-vect'); numpy.savez_compressed('farm-ads.npz', data=X.data, "
    "indices=X.indices, indptr=X.indptr, shape=X.shape, y=y > 0)"
)

_KNOWN = (
    # name, title, licence, rows, dim, classes, openml id, dtype, digest, elsewhere
    Source(
        *("digits", "8x8 handwritten digits", "CC BY 4.0", 1797, 64, 10, None, "float64"),
        digest="f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443",
    ),
    Source(
        *("mnist", "MNIST handwritten digits", "CC BY-SA 3.0", 70000, 784, 10, 554, "uint8"),
        digest="b3fe36794a3a345d09632e9d79f122d61ca91a07e5a22f8536973655bacf2a78",
    ),
    Source(
        *("cnae-9", "Brazilian company descriptions", "CC BY 4.0", 1080, 856, 9, 1468, "float64"),
        digest="3f860483a0a805f83e1ef5924d8e95ed6c989644e286942df27eea7b2bb66c40",
    ),
    Source(
        *("mfeat", "Zernike moments of numerals", "CC BY 4.0", 2000, 47, 10, 22, "float64"),
        digest="29d697a398ba7097041edeb3b93e816d6ca4cffafde2000dfc66ec5dd3f5b6b1",
    ),
    Source(
        *("spam", "Spambase e-mail statistics", "CC BY 4.0", 4601, 57, 2, 44, "float64"),
        digest="ac5f1044ec0e8fcde656ad01b11dcb23b294c852a64c1a0ca68be767a5e1e790",
    ),
    Source(
        *("farm-ads", "Farm Ads, bag of words (sparse)", "CC BY 4.0", 4143, 54877, 2, None, "float32"),
        digest="24c7e783fd946071ef3f4feedf35394be48c071684b848963dd472c36025db2b",
        elsewhere=_FARM_ADS,
    ),
)
CATALOGUE: dict[str, Source] = {source.name: source for source in _KNOWN}
