"""The manners of scikit-learn's estimators, without importing it.

That takes most of a second, more than the training of a small graph, and every command would wait for it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from kernelne._common.html import html_facts


class Estimator:
    """Base class of estimators: parameters are the arguments of the constructor, which only stores them.

    It serves wherever scikit-learn asks no more of an estimator: `clone`, grid searches, pipelines.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the parameters of subclasses

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, also those of parameters that are estimators, as name__name."""
        found: dict[str, Any] = {}
        for name in self._get_param_names():
            value = found[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": x for inner, x in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parameters that are estimators, as name__name."""
        names = self._get_param_names()
        for name in (given.partition("__")[0] for given in params):
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {names!r}."
                )
        for given in sorted(params, key=lambda name: "__" in name):  # an estimator first, then its parameters
            name, _, inner = given.partition("__")
            if inner:
                getattr(self, name).set_params(**{inner: params[given]})
            else:
                setattr(self, name, params[given])
        return self

    def _changed(self) -> dict[str, Any]:
        """Return the parameters that are not the defaults."""
        defaults = {p.name: p.default for p in inspect.signature(type(self)).parameters.values()}
        values = self.get_params(deep=False)
        return {name: value for name, value in values.items() if repr(value) != repr(defaults[name])}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._changed().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        shown = {name: repr(value) for name, value in self._changed().items()}
        return html_facts(type(self).__name__, shown or {"parameters": "as by default"})

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def check_is_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError if `fit` has not set an attribute."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet: call fit first")
