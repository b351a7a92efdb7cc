"""Where classes declare themselves, once, by kind and name."""

from __future__ import annotations
