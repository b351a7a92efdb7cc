"""Naive implementations, written to be obviously right, that the library is checked against."""
