"""User code on a GPU: states are written where it reads them, and its answers are read where they lie.

The engine asks for room for a batch, writes the states into it, has it evaluated, and reads log p and gradient by their
addresses. Nothing is copied to the host. PyTorch works on the stream that is current when the engine is called, and so
does the engine: neither waits. JAX has streams of its own, so both sides wait for each other, and a batch is copied on
the device, as arrays of JAX never change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core

Differentiate = Callable[[Any], tuple[Any, Any]]


class OnDevice:
    """Code that does not work on a GPU."""

    shares_stream = True

    def __init__(self, why: str) -> None:
        self._why = why

    def problem(self) -> str:
        """Why it does not, as a clause; empty where it does."""
        return self._why


class TorchOnDevice(OnDevice):
    """``differentiate`` gives log p and its gradient at a tensor of states."""

    def __init__(self, differentiate: Differentiate, device: Any, dtype: str) -> None:
        super().__init__("")
        import torch

        self._torch = torch
        self._differentiate = differentiate
        self._device = torch.device("cpu" if device is None else device)
        self._dtype = getattr(torch, dtype)

    def problem(self) -> str:
        if self._device.type != "cuda":
            return (
                f"its code is on the device '{self._device}': put the module on the GPU (module.to('cuda')), or give "
                "poise.target device='cuda'"
            )
        number = self._torch.cuda.current_device() if self._device.index is None else self._device.index
        if number != 0:
            return f"its code is on cuda:{number}, and chains run on the first GPU: put it on cuda:0"
        return ""

    def stream(self) -> int:
        return self._torch.cuda.current_stream(self._device).cuda_stream

    def room(self, shape: tuple[int, ...], is_double: bool) -> tuple[Any, int]:
        """A tensor whose values are still to be written. Every batch has one of its own, so code may keep it."""
        kind = self._torch.float64 if is_double else self._torch.float32
        x = self._torch.empty(shape, dtype=kind, device=self._device)
        return x, x.data_ptr()

    def evaluate(self, x: Any) -> tuple[Any, Any, int, bool, int, bool]:
        given = x if x.dtype == self._dtype else x.to(self._dtype)
        found = self._differentiate(given)
        value = self._read("log_prob", found[0], (len(x),), x.device)
        grad = self._read("gradient", found[1], tuple(x.shape), x.device)
        double = self._torch.float64
        return value, grad, value.data_ptr(), value.dtype == double, grad.data_ptr(), grad.dtype == double

    def _read(self, what: str, found: Any, shape: tuple[int, ...], device: Any) -> Any:
        torch = self._torch
        if not isinstance(found, torch.Tensor):
            raise TypeError(f"{what} gave {type(found).__name__}, expected a tensor on {device}")
        if found.device != device:
            raise ValueError(f"{what} gave a tensor on {found.device}, expected one on {device}, where the states are")
        if tuple(found.shape) != shape:
            raise ValueError(wrong_shape(what, tuple(found.shape), shape))
        if found.dtype not in (torch.float32, torch.float64):
            if found.dtype.is_complex or found.dtype == torch.bool:
                raise TypeError(f"{what} gave {found.dtype}, expected a tensor of float32 or float64")
            found = found.double()
        return found.detach().contiguous()


class JaxOnDevice(OnDevice):
    """``differentiate`` gives log p and its gradient at an array of states."""

    shares_stream = False

    def __init__(self, differentiate: Differentiate, dtype: str) -> None:
        super().__init__("")
        import jax

        self._jax = jax
        self._differentiate = differentiate
        self._dtype = dtype

    def problem(self) -> str:
        platform = self._jax.devices()[0].platform
        if platform not in ("gpu", "cuda"):
            return f"JAX works on the {platform.upper()} here: it needs its CUDA version (pip install 'jax[cuda13]')"
        return ""

    def stream(self) -> int:
        return 0

    def room(self, shape: tuple[int, ...], is_double: bool) -> tuple[Any, int]:
        return _core.device_array(list(shape), is_double)

    def evaluate(self, x: Any) -> tuple[Any, Any, int, bool, int, bool]:
        jax = self._jax
        given = jax.numpy.array(jax.dlpack.from_dlpack(x), dtype=self._dtype, copy=True)
        found = self._differentiate(given)
        value = self._read("log_prob", found[0], given.shape[:1], given)
        grad = self._read("gradient", found[1], given.shape, given)
        jax.block_until_ready((given, value, grad))
        return value, grad, _address(value), value.dtype == "float64", _address(grad), grad.dtype == "float64"

    def _read(self, what: str, found: Any, shape: tuple[int, ...], given: Any) -> Any:
        jax = self._jax
        if not isinstance(found, jax.Array):
            raise TypeError(f"{what} gave {type(found).__name__}, expected an array of JAX")
        if found.devices() != given.devices():
            raise ValueError(f"{what} gave an array on {found.devices()}, expected one on {given.devices()}")
        if found.shape != shape:
            raise ValueError(wrong_shape(what, found.shape, shape))
        if found.dtype not in ("float32", "float64"):
            if found.dtype.kind in "cb":
                raise TypeError(f"{what} gave {found.dtype}, expected an array of float32 or float64")
            found = found.astype("float32")
        return found


def _address(array: Any) -> int:
    """Of an array of JAX that lies on one device."""
    return array.unsafe_buffer_pointer()


def wrong_shape(what: str, found: tuple[int, ...], shape: tuple[int, ...]) -> str:
    expected = "one number for each state of the batch" if len(shape) == 1 else "the shape of the batch"
    return f"{what} gave shape {found}, expected {shape}: {expected}"
