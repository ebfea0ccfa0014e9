"""User code in NumPy, PyTorch or JAX, behind one face: arrays of states in, arrays of numbers out.

The engine hands over NumPy arrays in memory of its own. PyTorch and JAX get the same memory, without a copy, through
DLPack; what comes back is read where it lies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._on_device import JaxOnDevice, OnDevice, TorchOnDevice, wrong_shape

Array = npt.NDArray[Any]


class Code:
    """What the engine calls. Every result is a contiguous array of 32 or 64 bits in the memory of this machine."""

    framework = "numpy"

    def __init__(
        self,
        log_prob: Callable[[Any], Any],
        gradient: Callable[[Any], Any] | None,
        log_ratios: Callable[[Any], Any] | None,
    ) -> None:
        self._log_prob = log_prob
        self._gradient = gradient
        self._log_ratios = log_ratios
        self.pick_moves: Callable[[Array, Array], Array] | None = None
        self.differentiable = False  # whether the library finds a gradient by itself
        self.on_device = OnDevice("its code takes NumPy arrays, which are on the CPU; PyTorch and JAX have a GPU")

    @property
    def has_gradient(self) -> bool:
        return self._gradient is not None or self.differentiable

    @property
    def has_log_ratios(self) -> bool:
        return self._log_ratios is not None

    def log_prob(self, x: Array) -> Array:
        return self._read("log_prob", self._log_prob(self._give(x)), (len(x),))

    def log_prob_and_gradient(self, x: Array) -> tuple[Array, Array]:
        assert self._gradient is not None
        given = self._give(x)
        value = self._read("log_prob", self._log_prob(given), (len(x),))
        return value, self._read("gradient", self._gradient(given), x.shape)

    def log_ratios(self, x: Array) -> Array:
        assert self._log_ratios is not None and self.pick_moves is not None
        found = self._numbers("log_ratios", self._log_ratios(self._give(x)))
        return self.pick_moves(x, found[: len(x)] if found.ndim else found)

    def _give(self, x: Array) -> Any:
        return x

    def _numbers(self, what: str, found: Any) -> Array:
        if isinstance(found, np.ma.MaskedArray):
            raise TypeError(f"{what} gave a masked array, expected one in which every number counts")
        array = np.asarray(found)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype.kind in "iu" or array.dtype == np.float16:
            array = array.astype(np.float64)
        if array.dtype not in (np.float32, np.float64):
            raise TypeError(f"{what} gave {array.dtype}, expected an array of float32 or float64")
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def _read(self, what: str, found: Any, shape: tuple[int, ...]) -> Array:
        array = self._numbers(what, found)
        if array.shape != shape:
            raise ValueError(wrong_shape(what, array.shape, shape))
        return array


class TorchCode(Code):
    """PyTorch: the gradient comes from autograd where none is given."""

    framework = "torch"

    def __init__(
        self, log_prob: Any, gradient: Any, log_ratios: Any, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__(log_prob, gradient, log_ratios)
        import torch

        self._torch = torch
        self._device = device
        self.differentiable = True
        self.on_device = TorchOnDevice(self._differentiate, device, dtype)

    def log_prob(self, x: Array) -> Array:
        with self._torch.no_grad():
            return super().log_prob(x)

    def log_prob_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, grad = self._differentiate(self._give(x))
        return self._read("log_prob", value, (len(x),)), self._read("gradient", grad, x.shape)

    def _differentiate(self, given: Any) -> tuple[Any, Any]:
        if self._gradient is not None:
            with self._torch.no_grad():
                value = self._log_prob(given)
            return value, self._gradient(given)
        with self._torch.enable_grad():
            given = given.requires_grad_(True)
            value = self._log_prob(given)
            if not getattr(value, "requires_grad", False):
                raise ValueError("log_prob cannot be differentiated by autograd: its result does not depend on x")
            (grad,) = self._torch.autograd.grad(value.sum(), given)
        return value, grad

    def _give(self, x: Array) -> Any:
        tensor = self._torch.from_dlpack(x)
        return tensor if self._device is None else tensor.to(self._device)

    def _numbers(self, what: str, found: Any) -> Array:
        if isinstance(found, self._torch.Tensor):
            found = found.detach().cpu()
            if found.dtype == self._torch.bfloat16:
                found = found.float()
            found = found.numpy()
        return super()._numbers(what, found)


class JaxCode(Code):
    """JAX: compiled once per size of batch, gradient by differentiation."""

    framework = "jax"

    def __init__(self, log_prob: Any, gradient: Any, log_ratios: Any, dtype: str = "float32") -> None:
        super().__init__(log_prob, gradient, log_ratios)
        import jax

        self._jax = jax
        self.differentiable = True

        def total(x: Any) -> Any:
            value = log_prob(x)
            return value.sum(), value

        self._both = jax.jit(jax.value_and_grad(total, has_aux=True))
        self._log_prob = jax.jit(log_prob)
        self.on_device = JaxOnDevice(self._differentiate, dtype)

    def log_prob_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, grad = self._differentiate(self._give(x))
        return self._read("log_prob", value, (len(x),)), self._read("gradient", grad, x.shape)

    def _differentiate(self, given: Any) -> tuple[Any, Any]:
        if self._gradient is not None:
            return self._log_prob(given), self._gradient(given)
        (_, value), grad = self._both(given)
        return value, grad

    def _give(self, x: Array) -> Any:
        # One compilation for each size of batch: sizes are rounded up to a power of two.
        padded = 1 << (len(x) - 1).bit_length()
        if padded != len(x):
            x = np.concatenate([x, np.repeat(x[:1], padded - len(x), axis=0)])
        return self._jax.dlpack.from_dlpack(x)

    def _read(self, what: str, found: Any, shape: tuple[int, ...]) -> Array:
        array = self._numbers(what, found)
        if array.ndim and len(array) == 1 << (shape[0] - 1).bit_length():
            array = array[: shape[0]]
        return super()._read(what, array, shape)


def guess(code: Any) -> str:
    """Which library user code is written in, where that can be told without running it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        owner = getattr(code, "__self__", code)
        if isinstance(owner, torch.nn.Module):
            return "torch"
    kind = type(code).__module__.partition(".")[0]
    return "jax" if kind in ("jax", "jaxlib") else "numpy"


def parameters_of(owner: Any) -> tuple[str | None, Any]:
    """The dtype and the device of a module's parameters, as far as they matter."""
    owner = getattr(owner, "__self__", owner)
    first = next(owner.parameters(), None) if hasattr(owner, "parameters") else None
    if first is None:
        return None, None
    kind = str(first.dtype).removeprefix("torch.")
    return kind if kind in ("float32", "float64") else None, None if first.device.type == "cpu" else first.device


def default_dtype(framework: str) -> str:
    if framework == "torch":
        import torch

        kind = str(torch.get_default_dtype()).removeprefix("torch.")
        return kind if kind in ("float32", "float64") else "float32"
    return "float32" if framework == "jax" else "float64"


def make_code(framework: str, log_prob: Any, gradient: Any, log_ratios: Any, *, device: Any, dtype: str) -> Code:
    if framework == "torch":
        return TorchCode(log_prob, gradient, log_ratios, device, dtype)
    if framework == "jax":
        return JaxCode(log_prob, gradient, log_ratios, dtype)
    return Code(log_prob, gradient, log_ratios)
