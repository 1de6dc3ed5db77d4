"""The papers' theorems as numbers: effective dimension, budgets, decay, γ."""
