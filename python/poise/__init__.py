"""Poise samples from discrete distributions and tunes itself.

>>> import poise
>>> fit = poise.sample(poise.ising(size=8, coupling=0.2), draws=200, chains=4, seed=1, progress=False)
>>> fit.draws.shape
(4, 200, 8, 8)
"""

from . import _core
from ._answers import LogPartition, info, logz, mmd
from ._errors import (
    DisagreementWarning,
    ESSWarning,
    Interrupted,
    LadderWarning,
    LocalGainWarning,
    ModesWarning,
    NonFiniteWarning,
    OneChainWarning,
    PoiseWarning,
    RHatWarning,
    ShortWarning,
    StuckWarning,
    UnvisitedWarning,
    explain,
)
from ._diagnostics import Expectation, ess, mcse, rhat
from ._fit import Fit, load
from ._graphs import clique, mis
from ._ising import ising, maxcut, potts, qubo
from ._marginals import Marginals
from ._models import Model, bernoulli, fhmm, model, rbm, read
from ._optimize import Optimum, Solution, optimize
from ._picture import Picture
from ._ranks import num_ranks, rank
from ._sample import Comparison, compare, resume, sample, samplers
from ._scan import scan
from ._selection import Selection, finemap, select, selection
from ._stepper import Stepper
from ._table import Table
from ._target import Target, target
from ._training import TrainedRbm, train_rbm

__version__: str = _core.version()

__all__ = [
    "Comparison",
    "DisagreementWarning",
    "ESSWarning",
    "Expectation",
    "Fit",
    "Interrupted",
    "LadderWarning",
    "LocalGainWarning",
    "LogPartition",
    "Marginals",
    "Model",
    "ModesWarning",
    "NonFiniteWarning",
    "OneChainWarning",
    "Optimum",
    "Picture",
    "PoiseWarning",
    "RHatWarning",
    "Selection",
    "ShortWarning",
    "Solution",
    "Stepper",
    "StuckWarning",
    "Table",
    "Target",
    "TrainedRbm",
    "UnvisitedWarning",
    "__version__",
    "bernoulli",
    "clique",
    "compare",
    "ess",
    "explain",
    "fhmm",
    "finemap",
    "info",
    "ising",
    "load",
    "logz",
    "maxcut",
    "mcse",
    "mis",
    "mmd",
    "model",
    "num_ranks",
    "optimize",
    "potts",
    "qubo",
    "rank",
    "rbm",
    "read",
    "resume",
    "rhat",
    "sample",
    "samplers",
    "scan",
    "select",
    "selection",
    "target",
    "train_rbm",
]
