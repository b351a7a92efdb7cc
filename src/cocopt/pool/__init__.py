"""Many learners, each under a key, kept in a database: an acknowledged `tell` survives a crash.

`Pool` is all there is to it for users. `database` says what a database must offer; `sqlite` and `postgres` do.
"""

from cocopt.pool.pool import Pool

__all__ = ["Pool"]
