"""Arrays of other libraries: torch, JAX, CuPy, and all that follow the array API standard."""

import importlib
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar, cast

import numpy as np

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.extras import how_to_install

_UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""The unit roundoff: half the distance from 1 to the next number."""
_NUMBERS = 1 << 24  # numbers converted at a time
_COPIES = ("array_api_compat", "scipy._external.array_api_compat", "scipy._lib.array_api_compat")
_WRAPPED = frozenset({"torch", "cupy"})  # they follow the standard with array-api-compat
_TF32 = 2.0**-10  # the rounding of float32 entries in tensor cores, if the user allows it; they may truncate

Given = TypeVar("Given")
DType = object
Device = object


class Array(Protocol):
    """An array of any library that follows the array API standard, numpy included: what is used of it.

    The other operand is an array of the same library, or a number.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def T(self) -> "Array": ...
    def __getitem__(self, key: Any, /) -> "Array": ...
    def __float__(self) -> float: ...
    def __abs__(self) -> "Array": ...
    def __add__(self, other: Any, /) -> "Array": ...
    def __sub__(self, other: Any, /) -> "Array": ...
    def __mul__(self, other: Any, /) -> "Array": ...
    def __truediv__(self, other: Any, /) -> "Array": ...
    def __matmul__(self, other: Any, /) -> "Array": ...
    def __and__(self, other: Any, /) -> "Array": ...
    def __lt__(self, other: Any, /) -> "Array": ...
    def __ge__(self, other: Any, /) -> "Array": ...
    def __gt__(self, other: Any, /) -> "Array": ...


class Namespace(Protocol):
    """The functions of such a library, by the names of the standard: a module."""

    @property
    def float32(self) -> DType: ...
    @property
    def float64(self) -> DType: ...

    @property
    def linalg(self) -> Any: ...
    def __hash__(self) -> int: ...
    def asarray(self, x: object, /, **more: object) -> Array: ...
    def abs(self, x: Array, /) -> Array: ...
    def astype(self, x: Array, dtype: DType, /) -> Array: ...
    def zeros(self, shape: int, /, *, dtype: DType) -> Array: ...
    def zeros_like(self, x: Array, /) -> Array: ...
    def ones_like(self, x: Array, /) -> Array: ...
    def sqrt(self, x: Array, /) -> Array: ...
    def sum(self, x: Array, /, *, axis: int | None = None) -> Array: ...
    def mean(self, x: Array, /, *, axis: int | None = None) -> Array: ...
    def max(self, x: Array, /) -> Array: ...
    def min(self, x: Array, /, *, axis: int) -> Array: ...
    def argmax(self, x: Array, /, *, axis: int) -> Array: ...
    def matmul(self, x1: Array, x2: Array, /, **more: object) -> Array: ...
    def argsort(self, x: Array, /) -> Array: ...
    def where(self, condition: Array, x1: Array, x2: Array, /) -> Array: ...
    def clip(self, x: Array, low: float, high: float, /) -> Array: ...
    def take(self, x: Array, indices: Array, /, *, axis: int) -> Array: ...
    def nonzero(self, x: Array, /) -> tuple[Array, ...]: ...
    def reshape(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def broadcast_to(self, x: Array, shape: tuple[int, ...], /) -> Array: ...
    def concat(self, arrays: list[Array], /, *, axis: int = 0) -> Array: ...
    def stack(self, arrays: list[Array], /, *, axis: int = 0) -> Array: ...


def is_foreign(array: object) -> TypeGuard[Array]:
    """Whether it is an array of a library other than numpy that follows the array API standard."""
    if isinstance(array, (np.ndarray, np.generic)) or not hasattr(array, "shape"):
        return False
    return hasattr(array, "__array_namespace__") or _package(array) in _WRAPPED


def _package(array: object) -> str:
    """The package that the class of an array comes from."""
    return type(array).__module__.partition(".")[0].replace("jaxlib", "jax")


class Library(NamedTuple):
    """The library of an array: its array API namespace ``xp``, its name and the device."""

    xp: Namespace
    name: str
    device: Device

    @property
    def on_host(self) -> bool:
        """Whether it is numpy."""
        return self.name == "numpy"

    @property
    def kind(self) -> str:
        """The kind of device, where the library is torch: cpu, cuda, mps."""
        return str(self.device).partition(":")[0]

    @property
    def place(self) -> str:
        """The library, and the device where it has several."""
        return self.name if self.on_host else f"{self.name}, {self.device}"

    @property
    def widest(self) -> DType:
        """The widest real dtype available: float64, or else float32."""
        return _widest(self.xp, self.name, str(self.device))

    def put(self, array: AnyArray, dtype: DType = None) -> Array:
        """Copy a numpy array to this library and this device."""
        if self.on_host:
            return np.asarray(array, dtype=cast("np.dtype[Any] | None", dtype))
        if self.name == "torch":
            made: Array = _torch().tensor(np.ascontiguousarray(array), dtype=dtype, device=self.device)
            return made
        given = self.xp.asarray(np.asarray(array), device=self.device)
        return given if dtype is None else self.xp.astype(given, dtype)

    def to_host(self, array: Array) -> AnyArray:
        """Copy to a numpy array. bfloat16, which numpy does not have, becomes float32."""
        if self.on_host:
            return np.asarray(array)
        if self.name == "torch":
            tensor = _torch().Tensor.detach(array)
            wide = tensor.float() if dtype_name(tensor) == "bfloat16" else tensor
            return np.asarray(wide.cpu().numpy())
        if self.name == "cupy":
            return np.asarray(importlib.import_module("cupy").asnumpy(array))
        found = np.asarray(array)
        return found.astype(np.float32) if dtype_name(array) == "bfloat16" else found

    def contiguous(self, array: Array) -> Array:
        """The same numbers one row after the other, without what torch keeps for derivatives."""
        if self.name != "torch":
            return array
        made: Array = _torch().Tensor.detach(array).contiguous()
        return made

    def cast(self, array: Array, dtype: DType) -> Array:
        """Convert to another dtype, without a copy if it has that dtype already."""
        if array.dtype == dtype:
            return array
        return self.put(cast("AnyArray", array), dtype) if self.on_host else self.xp.astype(array, dtype)

    @property
    def compiles_every_shape(self) -> bool:
        """Whether an operation on arrays of a new shape takes long, once: JAX compiles it."""
        return self.name == "jax"

    def padded(self, indices: AnyArray) -> AnyArray:
        """Indices, the last one repeated where every new shape costs: so there are few different shapes."""
        if not self.compiles_every_shape or not len(indices):
            return indices
        room = 1 << (len(indices) - 1).bit_length()
        return np.concatenate([indices, np.repeat(indices[-1:], room - len(indices))])

    def nonzero(self, mask: Array) -> tuple[AnyArray, ...]:
        """The places where a mask is true, on the host."""
        if self.compiles_every_shape:
            return np.nonzero(self.to_host(mask))
        return tuple(self.to_host(found) for found in self.xp.nonzero(mask))

    def product(self, one: Array, other: Array) -> Array:
        """``one @ other``, with the precision that ``product_unit`` returns."""
        if self.name == "jax":  # JAX rounds the factors on some devices by default
            return self.xp.matmul(one, other, precision="highest")
        if self.name == "torch" and _torch().is_autocast_enabled(self.kind):
            with _torch().autocast(self.kind, enabled=False):  # autocast would multiply in half precision
                return one @ other
        if self.on_host and one.shape[0] == 1 and (other.ndim == 1 or other.shape[1] == 1):
            # BLAS would make the one number as an inner product: see linalg.inner
            made: Array = np.einsum("ij,j...->i...", cast("AnyArray", one), cast("AnyArray", other))
            return made
        return one @ other

    @property
    def doubles_are_fast(self) -> bool:
        """Whether float64 products are about as fast as float32 ones: on CPUs, and on A100 and H100."""
        if self.widest != self.xp.float64:
            return False
        if self.name == "torch":
            if self.kind == "cuda":
                return _torch().cuda.get_device_capability(self.device) in ((8, 0), (9, 0))
            return self.kind == "cpu"
        capability = str(getattr(self.device, "compute_capability", "9.0"))  # of CuPy and JAX; CPUs have none
        return capability.replace(".", "") in ("80", "90")

    def product_unit(self, dtype: DType) -> float:
        """The relative rounding of each entry of the factors of a product, beyond that of the dtype."""
        name = str(dtype).removeprefix("torch.")
        if self.name == "torch" and name == "float32":
            return _torch_unit()
        if self.name == "cupy" and name == "float32":
            return _TF32  # what CUPY_TF32 allows
        return 0.0


HOST = Library(cast("Namespace", np), "numpy", "cpu")


def library_of(array: object) -> Library:
    """The library of an array, also for numpy. Raises if the array cannot be used."""
    if isinstance(array, np.ndarray):
        return HOST
    name = _package(array)
    if name in _WRAPPED:
        layout = getattr(array, "layout", None)
        if name == "torch" and layout != _torch().strided:
            raise InputTypeError(f"the tensor's layout is {layout}; give a dense one: x.to_dense()")
        return Library(_compat(name), name, getattr(array, "device", None))
    if not hasattr(array, "__array_namespace__"):
        raise InputTypeError(f"{type(array).__name__} does not follow the array API standard")
    return Library(array.__array_namespace__(), name, getattr(array, "device", None))


def torch_on(device: str) -> Library:
    """Torch on the device of that name, such as cuda:0; clear errors where there is none."""
    try:
        torch = _torch()
    except ModuleNotFoundError as error:
        raise InputError(f"the device {device!r} needs torch, which is not installed here") from error
    try:
        there = torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"torch has no device {device!r} here: {reason}") from error
    return Library(_compat("torch"), "torch", there)


@cache
def _compat(name: str) -> Any:
    """The namespace of a library that follows the standard only with array-api-compat."""
    for package in _COPIES:
        try:
            return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name is None or not package.startswith(error.name.partition(".")[0]):
                raise
    raise InputTypeError(f"{name} arrays need array-api-compat: {how_to_install('arrays')}")


@cache
def _widest(xp: Namespace, name: str, device: str) -> DType:
    if name == "torch":
        return xp.float32 if device.startswith(("mps", "xpu")) else xp.float64
    if name == "jax":  # JAX has float64 only if the user has switched it on
        return xp.asarray(np.zeros(1)).dtype
    return xp.float64


def _torch_unit() -> float:
    """The rounding of the factors of float32 products that the user allows."""
    try:
        allowed = _torch().get_float32_matmul_precision()
    except RuntimeError:  # set for single backends, which have names of their own
        allowed = "medium"
    return {"highest": 0.0, "high": _TF32}.get(allowed, _UNITS["bfloat16"])


def _torch() -> ModuleType:
    """The module torch. It is installed if there is a tensor."""
    return importlib.import_module("torch")


def dtype_name(array: Array) -> str:
    """The name of the dtype, such as ``float32`` or ``bfloat16``, for every library."""
    return str(array.dtype).rpartition(".")[2].strip("'>").removeprefix("array_api_strict.")


def check_real_dtype(array: Array, noun: str = "arms") -> None:
    """Raise unless it is an array of real floating-point numbers."""
    if dtype_name(array) not in _UNITS:
        raise InputTypeError(f"{noun} are of dtype {array.dtype}; give float32, float64, bfloat16 or float16")


def unit_of(array: Array) -> float:
    """The unit roundoff of an array's dtype."""
    return _UNITS[dtype_name(array)]


def check_same_place(one: Library, other: Library) -> None:
    """Raise for arrays of different libraries or devices."""
    if one.name != other.name or str(one.device) != str(other.device):
        raise InputError(
            f"arrays of {one.name} on {one.device} and of {other.name} on {other.device} do not mix; "
            "bring them to one library and one device first"
        )


def half_product(library: Library, array: Array, vector: AnyArray) -> tuple[Array, float]:
    """x'v of rows in half precision, summed in float32, and the share by which v may have been rounded."""
    xp = library.xp
    if library.name == "torch" and library.kind == "cuda":
        kernel = importlib.import_module("sketchbandit.triton_products")
        made: Array = kernel.products(array, library.put(vector, xp.float32))
        return made, 0.0
    if library.name == "jax" and dtype_name(array) == "bfloat16":
        short = library.put(vector, array.dtype)
        made = xp.matmul(array, short, preferred_element_type=xp.float32, precision="highest")
        return made, 1.02 * unit_of(array)
    single, count = library.put(vector, xp.float32), array.shape[0]
    step = max(1, _NUMBERS // max(1, array.shape[1]))
    pieces = [
        library.product(library.cast(array[start : min(start + step, count), :], xp.float32), single)
        for start in range(0, count, step)
    ]
    unit = 3.0 * library.product_unit(xp.float32)
    return (pieces[0] if len(pieces) == 1 else xp.concat(pieces)), unit


def on_host(array: Given) -> Given | AnyArray:
    """Convert an array of another library to numpy. Anything else is returned as it is."""
    return library_of(array).to_host(array) if is_foreign(array) else array
