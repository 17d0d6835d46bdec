"""Cases: a data set under a condition, from a seed; what methods see, and what they are scored by."""

from undertow.lab.cases.case import Case, Condition, Data, Dataset, Size
from undertow.lab.cases.registry import DATASETS

__all__ = ["DATASETS", "Case", "Condition", "Data", "Dataset", "Size"]
