"""``cocopt stream``: learners behind lines of JSON, for programs in any language.

`serve` answers requests, one line each; `messages` says what a line may be, `described` makes sets, losses, constraints
and learners from descriptions, and `schema` has the JSON Schema of both sides.
"""

from cocopt.stream.described import learner_maker
from cocopt.stream.schema import schema
from cocopt.stream.service import serve

__all__ = ["learner_maker", "schema", "serve"]
