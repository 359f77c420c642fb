# SPDX-License-Identifier: Apache-2.0
"""A Python kernel without a web of sockets: IPython's shell behind one line-framed JSON stream.

Read kernel.py first: it receives the messages and runs the cells. shell.py is IPython bent to our
needs, wire.py and streams.py carry what it says, display.py decides what a value looks like,
figures.py, images.py, frame.py and charts/ know matplotlib, PIL and pandas, nursery.py forks.
"""
