"""Computing a graph: on the scheduler at an address, or where Dask does it by default."""

from typing import Any

from dask.base import compute

from sketchbandit.errors import SketchBanditError
from sketchbandit.extras import how_to_install

_PATIENCE = 10  # seconds for a scheduler to answer


def result_of(graph: Any, address: str | None) -> Any:
    """The value of a delayed object."""
    if address is None:
        return compute(graph)[0]
    with connect(address) as client:
        return client.compute(graph).result()


def connect(address: str) -> Any:
    """A client of the scheduler at an address. Use it in a ``with`` block, which closes it."""
    try:
        from distributed import Client  # noqa: PLC0415  (a part of Dask that not everybody has)
    except ModuleNotFoundError as error:
        raise SketchBanditError(f"a scheduler needs distributed: {how_to_install('dask')}") from error
    try:
        return Client(address, set_as_default=False, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise SketchBanditError(f"there is no Dask scheduler at {address}: {error}") from error
