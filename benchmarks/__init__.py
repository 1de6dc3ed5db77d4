"""Measurements of sketchmeans against what people use today."""
