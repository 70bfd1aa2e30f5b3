"""Experiment tracking: MLflow and TensorBoard."""

from holdfast_constructs.experiments.mlflow import MlflowApp
from holdfast_constructs.experiments.tensorboard import TensorBoardLogs

__all__ = ["MlflowApp", "TensorBoardLogs"]
