"""Graphs between rows and a few landmarks, and their spectra."""
