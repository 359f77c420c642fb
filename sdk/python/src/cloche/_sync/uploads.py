# SPDX-License-Identifier: Apache-2.0
"""Bodies of uploads, blocking."""

from __future__ import annotations

from typing import Any, Iterator

from .._core.files import check_piece, file_pieces, gzip_packer, is_file

IS_ASYNC = False


def pieces_of(data: Any, gzip: bool) -> Iterator[bytes]:
    packer = gzip_packer() if gzip else None
    for piece in file_pieces(data) if is_file(data) else map(check_piece, data):
        packed: bytes = piece if packer is None else packer.compress(piece)
        if packed:
            yield packed
    if packer is not None:
        yield packer.flush()
