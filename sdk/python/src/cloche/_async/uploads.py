# SPDX-License-Identifier: Apache-2.0
"""Bodies of uploads for asyncio: files are read in a thread, so that a slow disk holds up nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from .._core.files import check_piece, file_pieces, gzip_packer, is_file

IS_ASYNC = True


async def _raw(data: Any) -> AsyncIterator[bytes]:
    if is_file(data):
        pieces = file_pieces(data)
        loop = asyncio.get_running_loop()
        while True:
            piece = await loop.run_in_executor(None, next, pieces, None)
            if piece is None:
                return
            yield piece
    else:
        async for piece in data:
            yield check_piece(piece)


async def pieces_of(data: Any, gzip: bool) -> AsyncIterator[bytes]:
    packer = gzip_packer() if gzip else None
    async for piece in _raw(data):
        packed: bytes = piece if packer is None else packer.compress(piece)
        if packed:
            yield packed
    if packer is not None:
        yield packer.flush()
