"""A small runtime with torch's interface: a workload to profile if PyTorch is not installed.

Tensors, autograd, layers and optimizers run on the embedded Rust runtime, whose operators are
recorded under torch's names.

>>> import mindtorch_v2 as torch
>>> (torch.ones((2, 3)) @ torch.ones((3, 2))).sum().item()
12.0
"""

import builtins

try:
    from mindprof._core import (
        Tensor,
        __version__,
        add,
        arange,
        as_tensor,
        broadcast_tensors,
        cat,
        device,
        div,
        dtype,
        empty,
        eye,
        floor_divide,
        from_numpy,
        full,
        linspace,
        manual_seed,
        maximum,
        minimum,
        mul,
        ones,
        rand,
        randint,
        randn,
        randperm,
        set_printoptions,
        stack,
        sub,
        tensor,
        where,
        zeros,
    )
except ImportError as error:
    if error.name != "mindprof._core" or isinstance(error, ModuleNotFoundError):
        raise
    raise ImportError(
        "this build of mindprof has no embedded runtime: build it with the Cargo feature "
        "`runtime`, which is on by default, or record another framework",
        name="mindtorch_v2",
    ) from error

from mindtorch_v2 import _C as _C
from mindtorch_v2 import _missing, amp, autograd, cuda, nn, optim, profiler, serialization, utils
from mindtorch_v2 import _pickle as _pickle
from mindtorch_v2._einsum import einsum
from mindtorch_v2._functions import (
    concat,
    concatenate,
    divide,
    get_num_threads,
    hstack,
    isfinite,
    isinf,
    logical_and,
    logical_not,
    logical_or,
    meshgrid,
    multiply,
    set_num_threads,
    subtract,
    true_divide,
    vstack,
)
from mindtorch_v2._memory_format import contiguous_format, memory_format, preserve_format
from mindtorch_v2._named import Size
from mindtorch_v2.amp.autocast_mode import (
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from mindtorch_v2.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from mindtorch_v2.serialization import load, save

bfloat16 = dtype.bfloat16
float32 = float = dtype.float32
float64 = double = dtype.float64
int32 = int = dtype.int32
int64 = long = dtype.int64
bool = dtype.bool

# Other methods of a tensor are also functions that take one.
abs = Tensor.abs
addcdiv = Tensor.addcdiv
addcmul = Tensor.addcmul
addmm = Tensor.addmm
all = Tensor.all
allclose = Tensor.allclose
any = Tensor.any
argmax = Tensor.argmax
argmin = Tensor.argmin
argsort = Tensor.argsort
as_strided = Tensor.as_strided
bmm = Tensor.bmm
ceil = Tensor.ceil
chunk = Tensor.chunk
clamp = Tensor.clamp
clone = Tensor.clone
cos = Tensor.cos
cumsum = Tensor.cumsum
diag = Tensor.diag
dot = Tensor.dot
empty_like = Tensor.empty_like
eq = Tensor.eq
equal = Tensor.equal
erf = Tensor.erf
exp = Tensor.exp
expm1 = Tensor.expm1
flatten = Tensor.flatten
flip = Tensor.flip
floor = Tensor.floor
full_like = Tensor.full_like
gather = Tensor.gather
ge = Tensor.ge
gt = Tensor.gt
index_select = Tensor.index_select
is_floating_point = Tensor.is_floating_point
isnan = Tensor.isnan
le = Tensor.le
log = Tensor.log
log1p = Tensor.log1p
log2 = Tensor.log2
log_softmax = Tensor.log_softmax
logsumexp = Tensor.logsumexp
lt = Tensor.lt
masked_fill = Tensor.masked_fill
masked_select = Tensor.masked_select
matmul = Tensor.matmul
max = Tensor.max
mean = Tensor.mean
median = Tensor.median
min = Tensor.min
mm = Tensor.mm
mv = Tensor.mv
narrow = Tensor.narrow
ne = Tensor.ne
neg = Tensor.neg
nonzero = Tensor.nonzero
norm = Tensor.norm
numel = Tensor.numel
ones_like = Tensor.ones_like
outer = Tensor.outer
permute = Tensor.permute
pow = Tensor.pow
prod = Tensor.prod
rand_like = Tensor.rand_like
randn_like = Tensor.randn_like
reciprocal = Tensor.reciprocal
relu = Tensor.relu
remainder = Tensor.remainder
reshape = Tensor.reshape
roll = Tensor.roll
round = Tensor.round
rsqrt = Tensor.rsqrt
scatter = Tensor.scatter
scatter_add = Tensor.scatter_add
select = Tensor.select
sigmoid = Tensor.sigmoid
sign = Tensor.sign
sin = Tensor.sin
softmax = Tensor.softmax
sort = Tensor.sort
split = Tensor.split
sqrt = Tensor.sqrt
square = Tensor.square
squeeze = Tensor.squeeze
std = Tensor.std
sum = Tensor.sum
t = Tensor.t
tanh = Tensor.tanh
topk = Tensor.topk
transpose = Tensor.transpose
tril = Tensor.tril
triu = Tensor.triu
unbind = Tensor.unbind
unique = Tensor.unique
unsqueeze = Tensor.unsqueeze
var = Tensor.var
zeros_like = Tensor.zeros_like


def is_tensor(obj: object) -> builtins.bool:
    """Returns whether an object is a tensor."""
    return isinstance(obj, Tensor)


__all__ = [
    "Size",
    "Tensor",
    "__version__",
    "abs",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "all",
    "allclose",
    "amp",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "as_strided",
    "as_tensor",
    "autocast",
    "autograd",
    "bfloat16",
    "bmm",
    "bool",
    "broadcast_tensors",
    "cat",
    "ceil",
    "chunk",
    "clamp",
    "clear_autocast_cache",
    "clone",
    "concat",
    "concatenate",
    "contiguous_format",
    "cos",
    "cuda",
    "cumsum",
    "device",
    "diag",
    "div",
    "divide",
    "dot",
    "double",
    "dtype",
    "einsum",
    "empty",
    "empty_like",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "exp",
    "expm1",
    "eye",
    "flatten",
    "flip",
    "float",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_numpy",
    "full",
    "full_like",
    "gather",
    "ge",
    "get_autocast_dtype",
    "get_num_threads",
    "gt",
    "hstack",
    "index_select",
    "inference_mode",
    "int",
    "int32",
    "int64",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_tensor",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "linspace",
    "load",
    "log",
    "log1p",
    "log2",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsumexp",
    "long",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mul",
    "multiply",
    "mv",
    "narrow",
    "ne",
    "neg",
    "nn",
    "no_grad",
    "nonzero",
    "norm",
    "numel",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "permute",
    "pow",
    "preserve_format",
    "prod",
    "profiler",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "reciprocal",
    "relu",
    "remainder",
    "reshape",
    "roll",
    "round",
    "rsqrt",
    "save",
    "scatter",
    "scatter_add",
    "select",
    "serialization",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "sub",
    "subtract",
    "sum",
    "t",
    "tanh",
    "tensor",
    "topk",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "unbind",
    "unique",
    "unsqueeze",
    "utils",
    "var",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

__getattr__ = _missing.attribute_of(__name__)
