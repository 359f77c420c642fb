# SPDX-License-Identifier: Apache-2.0
from cloche.exceptions import *  # noqa: F403
