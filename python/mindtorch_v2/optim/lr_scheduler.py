"""Learning rate schedulers."""

from mindtorch_v2.optim._composed_schedulers import ChainedScheduler, SequentialLR
from mindtorch_v2.optim._cosine_schedulers import CosineAnnealingLR, CosineAnnealingWarmRestarts
from mindtorch_v2.optim._cyclic import CyclicLR
from mindtorch_v2.optim._lambda_schedulers import LambdaLR, MultiplicativeLR
from mindtorch_v2.optim._one_cycle import OneCycleLR
from mindtorch_v2.optim._plateau import ReduceLROnPlateau
from mindtorch_v2.optim._ramp_schedulers import ConstantLR, LinearLR, PolynomialLR
from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim._step_schedulers import ExponentialLR, MultiStepLR, StepLR

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
