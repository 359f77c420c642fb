# SPDX-License-Identifier: Apache-2.0
"""A Python kernel without a web of sockets: IPython's shell behind one line-framed JSON stream.

Read kernel.py first: it receives the messages and runs the cells. shell.py is IPython bent to our
needs, wire.py and streams.py carry what it says, display.py decides what a value looks like,
figures.py and images.py know matplotlib and PIL, nursery.py forks. charts/ is the package of sdk/charts,
which reads data off figures and tables; scripts/stage-runtime lays it here.
"""
