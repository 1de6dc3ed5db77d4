"""The Nyström map: features on the span of a few landmarks."""

from sketchmeans.nystrom.transformer import Nystrom

__all__ = ["Nystrom"]
