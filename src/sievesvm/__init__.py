"""Sparse linear SVMs with safe feature screening and a certificate on every answer."""

from .certify import Certificate, duality_gap
from .columns import ColumnSource, as_columns
from .problem import first_features, lambda_max
from .result import SVMPath
from .screening import Screening, screen
from .train import ConvergenceWarning, svm_path, svm_paths

__all__ = [
    "Certificate",
    "ColumnSource",
    "ConvergenceWarning",
    "SVMPath",
    "Screening",
    "as_columns",
    "duality_gap",
    "first_features",
    "lambda_max",
    "screen",
    "svm_path",
    "svm_paths",
]
__version__ = "0.1.0"
