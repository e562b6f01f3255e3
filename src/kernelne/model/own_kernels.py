"""`register_kernel`: a kernel of one's own, from a Python function of NumPy expressions.

The function is checked, then rewritten so that one definition serves the float64 reference, Numba and Triton:
numbers become float32 constants, whole powers become products, other powers become exp and log.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelne.errors import ParameterError
from kernelne.model import kernels
from kernelne.model.kernels import BUILT_IN, KERNELS, OWN_CHECKS

_FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "maximum": 2, "minimum": 2}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_MOST_POWER = 8
_SIGMAS = (0.5, 1.0, 2.0)
#: Squared distances at which value and slope are checked, and the step of the differences, relative to them.
_DISTANCES = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 61)])
_STEP, _TOLERANCE = 1e-4, 1e-3
_LOOSE, _ROUNDING = 1e-2, 1e-8  # for any sigma: slopes relative to the largest, and differences of values
_ALLOWED = (
    "assignments to names and `return value, slope`, made of +, -, *, /, **, numbers, the two arguments, and "
    f"{', '.join(_FUNCTIONS)} of NumPy"
)


def register_kernel(name: str, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Add a kernel, so that `kernel=name` and `kernels=[(name, sigma), …]` know it.

    `function(D, sigma)` returns the kernel's value at squared distance D and its derivative by D. It consists
    of assignments and a `return`, with +, -, *, /, ** and exp, log, sqrt, maximum and minimum of NumPy. The
    value must be 1 at D = 0, must not rise with D, and must be between 0 and 1; the derivative is compared
    with differences of values, for sigma 0.5, 1 and 2, and where it is used for the sigma in use. The kernel
    is known in this process until it ends, and may be registered again with another function. Its first
    training compiles the loop, about half a minute; the result is kept on disk under the function's source.

    >>> def cauchy(D, sigma):
    ...     base = 1 + D / sigma**2
    ...     return 1 / base, -1 / (sigma * base) ** 2
    >>> register_kernel("cauchy", cauchy)                                            # doctest: +SKIP
    >>> KernelNE(kernel="cauchy", sigma=1.0).fit(graph)                              # doctest: +SKIP
    """
    if not isinstance(name, str) or not name.isidentifier() or name in BUILT_IN:
        raise ParameterError("name", name, "must be a Python name that is not one of the built-in kernels")
    made = _rewritten(name, function)
    _check(name, made)
    KERNELS[name] = made
    OWN_CHECKS[name] = partial(_check_slope, name, made)


def _rewritten(name: str, function: Any) -> kernels.KernelFunction:
    """Return the function as one of `exp`, `log` and float32 constants; its source is in `linecache`."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        told = "must be a function written with def, in a file or a notebook, so that its source can be read"
        raise ParameterError("function", function, told) from None
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        raise ParameterError("function", function, "must be a function written with def, not decorated")
    arguments = definition.args
    if len(arguments.args) != 2 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        raise ParameterError("function", function, "must take two arguments, the squared distance and sigma")
    writer = _Writer(name, function, [argument.arg for argument in arguments.args])
    body = [writer.statement(node) for node in definition.body if not _is_docstring(node)]
    if not body or not body[-1].startswith("return "):
        raise writer.error(definition, "the last line must be `return value, slope`")
    head = f"def {name}({', '.join(f'{arg}: Any' for arg in writer.arguments)}) -> Any:\n"
    text = head + "".join(f"    {line}\n" for line in body)
    key = hashlib.blake2b(f"{text}{sorted(writer.constants.items())}".encode(), digest_size=8).hexdigest()
    file = f"<kernel {name} {key}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {each: getattr(kernels, each) for each in _FUNCTIONS}
    space: dict[str, Any] = {"Any": Any, **names, **{k: np.float32(v) for k, v in writer.constants.items()}}
    exec(compile(text, file, "exec"), space)
    made: types.FunctionType = space[name]
    made.__doc__ = function.__doc__
    made.__module__ = __name__
    return made


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Writer:
    """Writes the statements of a function anew; raises ParameterError at anything that is not allowed."""

    def __init__(self, name: str, function: Any, arguments: list[str]) -> None:
        self.name, self.function, self.arguments = name, function, arguments
        self.known = {*arguments}
        self.constants: dict[str, float] = {}
        closure = inspect.getclosurevars(function)
        self.outside = {**closure.globals, **closure.nonlocals}

    def error(self, node: ast.AST, told: str = "") -> ParameterError:
        shown = ast.unparse(node).splitlines()[0][:80]
        return ParameterError(
            "function", self.name, f"{told or f'`{shown}` is not allowed'}; allowed are {_ALLOWED}"
        )

    def statement(self, node: ast.stmt) -> str:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            line = f"{node.targets[0].id} = {self.write(node.value)}"
            self.known.add(node.targets[0].id)
            return line
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            return f"return {', '.join(map(self.write, node.value.elts))}"
        raise self.error(node)

    def write(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id in self.known:
            return node.id
        value = self.number(node)
        if value is not None:
            return self.constant(value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"(-{self.write(node.operand)})"
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            if isinstance(node.op, ast.Pow):
                return self.power(node)
            mark = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2]
            return f"({self.write(node.left)} {mark} {self.write(node.right)})"
        if isinstance(node, ast.Call) and not node.keywords:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if self.is_numpys(node.func, called) and len(node.args) == _FUNCTIONS[called]:
                return f"{called}({', '.join(self.write(argument) for argument in node.args)})"
        raise self.error(node)

    def power(self, node: ast.BinOp) -> str:
        base, exponent = self.write(node.left), self.number(node.right)
        if exponent is not None and exponent == int(exponent) and 1 <= abs(exponent) <= _MOST_POWER:
            product = " * ".join([base] * int(abs(exponent)))
            return f"({product})" if exponent > 0 else f"({self.constant(1.0)} / ({product}))"
        return f"exp({self.write(node.right)} * log({base}))"

    def number(self, node: ast.expr) -> float | None:
        """Return the value of a number, also one that is a variable outside of the function."""
        value: Any = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name) and node.id not in self.known:
            value = self.outside.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.Attribute) and node.attr in ("pi", "e"):
            value = getattr(np, node.attr)
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        return float(value) if is_number else None

    def constant(self, value: float) -> str:
        name = next((k for k, v in self.constants.items() if v == value), f"C{len(self.constants)}")
        while name in self.known:
            name += "_"
        self.constants[name] = value
        return name

    def is_numpys(self, node: ast.expr, called: str) -> bool:
        """Whether a function is one of those of NumPy that are allowed, by whatever name."""
        if called not in _FUNCTIONS:
            return False
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and self.outside.get(node.value.id) is np
        return self.outside.get(called) in (getattr(np, called), getattr(kernels, called, None))


def _check(name: str, function: kernels.KernelFunction) -> None:
    """Raise ParameterError unless the function is a kernel with its derivative."""
    for sigma in _SIGMAS:
        with np.errstate(all="ignore"):
            values, slopes = (np.broadcast_to(x, _DISTANCES.shape) for x in function(_DISTANCES, sigma))
            step = _STEP * np.maximum(_DISTANCES, _STEP)
            ahead, behind = (
                function(_DISTANCES + s, sigma)[0] for s in (step, np.where(_DISTANCES > 0, -step, 0))
            )
            single = function(_DISTANCES.astype(np.float32), np.float32(sigma))
        at = f"with sigma={sigma} "
        finite = np.isfinite(values) & np.isfinite(slopes)
        if not finite.all():
            told = f"{at}value or slope is not finite at D={_DISTANCES[~finite][0]:.4g}"
        elif not abs(values[0] - 1) < _TOLERANCE:
            told = f"{at}the value at D=0 is {values[0]:.4g}, and must be 1"
        elif values.min() < 0 or values.max() > 1 + _TOLERANCE or (np.diff(values) > 1e-9).any():
            told = f"{at}the value must be between 0 and 1 and must not rise with D"
        else:
            differences = (ahead - behind) / np.where(_DISTANCES > 0, 2 * step, step)
            off = np.abs(slopes - differences) > _TOLERANCE * np.maximum(np.abs(slopes).max(), 1e-3)
            told = ""
            if off.any():
                k = int(off.argmax())
                place = f"{at}the slope at D={_DISTANCES[k]:.4g} is"
                told = f"{place} {slopes[k]:.4g}, by values {differences[k]:.4g}"
            elif not all(
                np.allclose(a, b, atol=_TOLERANCE) for a, b in zip(single, (values, slopes), strict=True)
            ):
                told = f"{at}values in single precision differ from those in double"
        if told:
            raise ParameterError("function", name, told)


def _check_slope(name: str, function: kernels.KernelFunction, sigma: float) -> None:
    """Raise ParameterError unless value and slope are those of a kernel for the sigma in use."""
    D = _DISTANCES[1:]
    with np.errstate(all="ignore"):
        values, slopes = (np.broadcast_to(x, D.shape) for x in function(D, sigma))
        differences = (function(D * (1 + _STEP), sigma)[0] - function(D * (1 - _STEP), sigma)[0]) / (
            2 * _STEP * D
        )
    told = ""
    if not (np.isfinite(values) & np.isfinite(slopes)).all():
        told = "value or slope is not finite"
    elif values.min() < 0 or values.max() > 1 + _TOLERANCE or (np.diff(values) > 1e-9).any():
        told = "the value is not between 0 and 1, or rises with the distance"
    else:
        off = np.abs(slopes - differences) > _LOOSE * np.abs(slopes).max() + _ROUNDING
        if off.any():
            k = int(off.argmax())
            told = f"the slope at D={D[k]:.4g} is {slopes[k]:.4g}, by values {differences[k]:.4g}"
    if told:
        raise ParameterError("sigma", sigma, f"the kernel {name} is none for it: {told}")
