"""`Sequential`, `ModuleList` and `ModuleDict`: containers of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, overload

from mindtorch_v2.nn import _text
from mindtorch_v2.nn.module import Module

if TYPE_CHECKING:
    from typing_extensions import Self


class _Row(Module):
    """An ordered container of modules, registered under given names or their indices."""

    _modules: dict[str, Module]  # type: ignore[assignment]  # a place in a row is never empty

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: int | slice) -> Module | Self:
        if isinstance(idx, slice):
            return self._slice(idx)
        return self._modules[self._name(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name(idx)]
        for name in names:
            delattr(self, name)
        self._renumber(list(self))

    def append(self, module: Module) -> Self:
        """Appends a module."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Module | Self:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def _slice(self, places: slice) -> Self:
        raise NotImplementedError

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def _name(self, index: int) -> str:
        number = index.__index__()
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range")
        return list(self._modules)[number]


class Sequential(_Row):
    """Passes its input through its modules in order.

    Args:
        args: The modules, or one ordered dictionary with their names.

    Example:
        >>> from mindtorch_v2 import nn
        >>> nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        Sequential(
          (0): Linear(in_features=4, out_features=8, bias=True)
          (1): ReLU()
          (2): Linear(in_features=8, out_features=2, bias=True)
        )
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Any]] = args[0].items()
        else:
            named = ((str(number), module) for number, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Runs the modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Inserts a module before the one at `index`."""
        assert isinstance(module, Module), f"module should be of type: {Module}"
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Appends modules."""
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_added(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_added(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * _times(self, other)))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (_times(self, other) - 1))

    def _slice(self, places: slice) -> Self:
        return type(self)(OrderedDict(list(self._modules.items())[places]))


class ModuleList(_Row):
    """Holds modules in a list, so that they are registered. It cannot be called.

    Args:
        modules: The initial modules.

    Example:
        >>> from mindtorch_v2 import nn
        >>> nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Appends modules."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        return _text.describe_list(self)

    def _slice(self, places: slice) -> Self:
        return type(self)(list(self)[places])


class ModuleDict(Module):
    """Holds modules by name, so that they are registered. It cannot be called.

    Args:
        modules: The initial modules: a mapping, or pairs of a name and a module.

    Example:
        >>> from mindtorch_v2 import nn
        >>> nn.ModuleDict({"linear": nn.Linear(2, 2)})
        ModuleDict(
          (linear): Linear(in_features=2, out_features=2, bias=True)
        )
    """

    _modules: dict[str, Module]  # type: ignore[assignment]  # a name is never without a module

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Returns the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Returns names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """Returns the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules, replacing those with the same names."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, "
                f"but got {type(modules).__name__}"
            )
        for key, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[key] = module


def _added(other: Sequential) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return other


def _times(owner: Sequential, times: int) -> int:
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(owner)} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {type(owner)}")
    return times
