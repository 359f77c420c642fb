# SPDX-License-Identifier: Apache-2.0
"""The front door of the Python kernel.

Started plainly it is one kernel on descriptor 3; with --nursery it loads everything heavy once and
forks kernels on demand; with --zygote its forks move into boxes; with --again it goes on as a kernel whose libraries
have changed before its first cell. The protocol is docs/kernel-protocol.md.

The script's own folder must not stay on sys.path: a user's module may have the name of one of ours.
"""

import os
import sys


def main(argv: list[str]) -> None:
    sys.path[0] = os.path.dirname(os.path.realpath(__file__))
    if argv[1:] == ["--zygote"]:
        from cloche_kernel import zygote as role  # needs a newer Python than the others
    elif argv[1:] == ["--nursery"]:
        from cloche_kernel import nursery as role  # type: ignore[no-redef]
    elif argv[1:2] == ["--again"] and len(argv) == 3 and argv[2].isdigit():
        from cloche_kernel import kernel

        sys.path[0] = ""
        sys.argv = [""]
        kernel.serve(int(argv[2]))
        return
    elif argv[1:]:
        sys.exit(f"{argv[0]}: unknown argument {argv[1]!r} (only --nursery and --zygote are known)")
    else:
        from cloche_kernel import kernel as role  # type: ignore[no-redef]
    sys.path[0] = ""
    sys.argv = [""]
    role.serve()


if __name__ == "__main__":
    main(sys.argv)
