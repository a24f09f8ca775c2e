"""Sketches of Dask collections."""
