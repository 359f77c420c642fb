"""What two forks of one nursery must not share, renewed in the child.

A fork copies the state of every random generator and every secret made so far; two boxes would draw
the same numbers. Modules that were never loaded need nothing: they start fresh when imported.
Python's string hash seed is fixed when the interpreter starts and cannot be renewed.
"""

import os
import random
import sys


def renew() -> None:
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None  # type: ignore[attr-defined]
    uuid = sys.modules.get("uuid")
    if uuid is not None:
        uuid._node = uuid._last_timestamp = None  # type: ignore[attr-defined]
    ssl = sys.modules.get("ssl")
    if ssl is not None:
        ssl.RAND_add(os.urandom(48), 48.0)  # the same library makes keys and numbers for hashlib and requests
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
