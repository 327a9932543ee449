"""Passes over modules of Relay text: `relay.transform.X()(module)` is the module after the pass X.

Each pass takes and returns a `Module`, and keeps types, effects and values; `Sequential` runs several. `passes.py` says how
they are built, `normal.py` in which form they work.
"""

from .common.passes import Sequential
from .common_subexpressions import EliminateCommonSubexpr
from .continuations import ToCPS
from .dead_code import DeadCodeElimination
from .fold_constant import FoldConstant
from .forms import ToANormalForm, ToGraphNormalForm
from .fusion import FuseOps
from .gradients import Gradient
from .infer_type import InferType
from .inlining import Inline
from .lambda_lifting import LambdaLift
from .layouts import AlterOpLayout
from .parallel_convolutions import CombineParallelConv2D
from .partial import PartialEvaluate
from .scale_axis import FoldScaleAxis
from .simplification import SimplifyExpr

__all__ = [
    "AlterOpLayout",
    "CombineParallelConv2D",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "FoldConstant",
    "FoldScaleAxis",
    "FuseOps",
    "Gradient",
    "InferType",
    "Inline",
    "LambdaLift",
    "PartialEvaluate",
    "Sequential",
    "SimplifyExpr",
    "ToANormalForm",
    "ToCPS",
    "ToGraphNormalForm",
]
