"""`Optimizer`: the common base of optimizers, with groups, state, hooks and recorded scopes."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mindprof import record_function
from mindprof._core import note_optimizer

import mindtorch_v2 as torch
from mindtorch_v2._gradient import clear_gradient
from mindtorch_v2._typename import typename
from mindtorch_v2.optim import _state
from mindtorch_v2.utils.hooks import RemovableHandle, register

Params: TypeAlias = (
    "Iterable[torch.Tensor] | Iterable[tuple[str, torch.Tensor]] | Iterable[dict[str, Any]]"
)
Closure: TypeAlias = Callable[[], Any]
_Hooks: TypeAlias = "OrderedDict[int, Callable[..., Any]]"

# The moments at which the hooks of an optimizer are called.
_MOMENTS = [
    f"{what}_{when}"
    for what in ("step", "state_dict", "load_state_dict")
    for when in ("pre", "post")
]
# The hooks that apply to every optimizer.
_EVERY_PRE: _Hooks = OrderedDict()
_EVERY_POST: _Hooks = OrderedDict()


class Optimizer:
    """The base class of all optimizers. Subclasses define `step`.

    A profile shows a step as `Optimizer.step#SGD.step` and the clearing of gradients as
    `Optimizer.zero_grad#SGD.zero_grad`, with the name of the class.

    Args:
        params: The parameters, pairs of a name and a parameter, or groups: dictionaries with
            `"params"` and the options in which they differ from `defaults`.
        defaults: The default options of groups.
    """

    _opt_called: bool
    _optimizer_step_pre_hooks: _Hooks
    _optimizer_step_post_hooks: _Hooks
    _optimizer_state_dict_pre_hooks: _Hooks
    _optimizer_state_dict_post_hooks: _Hooks
    _optimizer_load_state_dict_pre_hooks: _Hooks
    _optimizer_load_state_dict_post_hooks: _Hooks

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be "
                f"an iterable of Tensors or dicts, but got {typename(params)}"
            )
        if isinstance(params, set):
            warnings.warn(
                _UNORDERED + " This will be an error in a future release.",
                FutureWarning,
                stacklevel=3,
            )
        self.defaults = defaults
        self.state: defaultdict[torch.Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        for moment in _MOMENTS:
            self.__dict__[f"_optimizer_{moment}_hooks"] = OrderedDict()
        given: list[Any] = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_scope_and_hooks(cls.step)  # type: ignore[method-assign]

    def step(self, closure: Closure | None = None) -> Any:
        """Performs one optimization step.

        Args:
            closure: Recomputes the loss and its gradients, and returns the loss.

        Returns:
            The result of the closure, or `None`.
        """
        raise NotImplementedError

    @staticmethod
    def _evaluate(closure: Closure | None) -> Any:
        """Recomputes the loss and its gradients if a closure is given."""
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters, by dropping them or filling them with zeros."""
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            for group in self.param_groups:
                for parameter in group["params"]:
                    clear_gradient(parameter, set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, with options of its own.

        Args:
            param_group: A dictionary with `"params"` and any options.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(_UNORDERED)
        group = {
            **param_group,
            **_named([given] if isinstance(given, torch.Tensor) else list(given)),
        }
        for parameter in group["params"]:
            _check(parameter)
        for option, value in self.defaults.items():
            group.setdefault(option, value)
        if len(set(group["params"])) != len(group["params"]):
            warnings.warn(_DUPLICATES, stacklevel=3)
        if self.param_groups and ("param_names" in group) != (
            "param_names" in self.param_groups[0]
        ):
            manner = "with" if "param_names" in group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {manner} names to the optimizer"
            )
        if any(not set(group["params"]).isdisjoint(other["params"]) for other in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def state_dict(self) -> dict[str, Any]:
        """Returns state and options, with parameters as numbers."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        saved = _state.save(self)
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            saved = _unless_none(post_hook(self, saved), saved)
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; tensors are shared, not copied.

        Raises:
            ValueError: If the number or the sizes of the groups do not match.
        """
        saved = dict(state_dict)
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            saved = _unless_none(pre_hook(self, saved), saved)
        _state.load(self, saved)
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers `hook(optimizer, args, kwargs)`, called before each step.

        It may return new `(args, kwargs)` for the step; the first of `args` is the optimizer.
        """
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers `hook(optimizer, args, kwargs)`, called after each step."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(optimizer)`, called before `state_dict` reads state and options."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(optimizer, state_dict)`, called with the result of `state_dict`.

        It may modify the result or return a replacement.
        """
        return register(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(optimizer, state_dict)`, called before `load_state_dict` reads it.

        It may return a replacement.
        """
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(optimizer)`, called after `load_state_dict`."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines.extend(f"    {key}: {group[key]}" for key in sorted(group) if key != "params")
        return "\n".join([*lines, ")"])


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers `hook(optimizer, args, kwargs)`, called before each step of any optimizer."""
    return register(_EVERY_PRE, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Registers `hook(optimizer, args, kwargs)`, called after each step of any optimizer."""
    return register(_EVERY_POST, hook)


def _unless_none(given: Any, otherwise: dict[str, Any]) -> Any:
    return otherwise if given is None else given


def _with_scope_and_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        self: Optimizer = args[0]
        if type(self).step is not stepped:
            # Called through `super().step()`: the scope and the hooks belong to the outer step.
            return step(*args, **kwargs)
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            for pre_hook in [*_EVERY_PRE.values(), *self._optimizer_step_pre_hooks.values()]:
                result = pre_hook(self, args, kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {result}."
                    )
                args, kwargs = result
            output = step(*args, **kwargs)
            # After the step, when its state exists.
            note_optimizer(self)
            if "_opt_called" in self.__dict__:  # read by schedulers, which warn about order
                self._opt_called = True
            for post_hook in [*self._optimizer_step_post_hooks.values(), *_EVERY_POST.values()]:
                post_hook(self, args, kwargs)
            return output

    return stepped


def _named(given: list[Any]) -> dict[str, list[Any]]:
    with_names = [isinstance(entry, tuple) for entry in given]
    if not any(with_names):
        return {"params": given}
    if not all(with_names):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    names, parameters = zip(*given, strict=True)
    return {"params": list(parameters), "param_names": list(names)}


def _check(parameter: Any) -> None:
    if not isinstance(parameter, torch.Tensor):
        raise TypeError(
            f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}"
        )
    if not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


_UNORDERED = (
    "optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
    "in sets will change between runs. Please use a list instead."
)
_DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
    "error; see github.com/pytorch/pytorch/issues/40967 for more information"
)
