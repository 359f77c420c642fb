# SPDX-License-Identifier: Apache-2.0
"""Charts read off matplotlib figures: what was plotted, as data a program can use.

figure_chart() is the way in. figure.py decides between one chart and several, kind.py says which type
an axes is, and there is a module per type: line, scatter, bar, pie, box. axis.py knows ticks,
labels, units and scales; values.py turns plotted values into JSON.
"""

from .figure import figure_chart

__all__ = ["figure_chart"]
