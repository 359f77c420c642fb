# SPDX-License-Identifier: Apache-2.0
"""IPython's shell, bent to a kernel without terminal, history file or colours.

It keeps all that users know (magics, In and Out, `!cmd`, top-level await, tracebacks) and drops what costs:
the profile folder, the history database and its thread, the second compilation that
only asks whether a cell awaits, and the tokenising of cells that hold no IPython syntax.
What the shell has to say goes to the Publisher.
"""

import builtins
import getpass
import importlib
import linecache
import os
import re
import site
import sys
import traceback
from collections.abc import Coroutine
from contextlib import contextmanager
from typing import Any

import IPython
from IPython.core import interactiveshell
from IPython.core.autocall import IPyAutocall
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell
from IPython.core.macro import Macro
from traitlets.config import Config

from . import display, imports, terminal, traces
from .inline import InlineBackend
from .loop import CellLoop
from .publisher import Publisher

# A cell with none of these is Python as it stands: no magics, shell or help marks, prompts, indentation.
IPYTHON_SYNTAX = re.compile(r"[%!?]|\A\s|\A\Z|^\s*(?:[,;/]|\.\.\.|>>>|In \[)", re.MULTILINE)
FIRST_NAME = re.compile(r"[^\W\d]\w*")
INLINE_NAMES = {None, "", "auto", "inline", "notebook", "nbagg", "widget", "ipympl"}


class History(HistoryManager):
    """In and _i, in memory only."""

    def store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        source = source.rstrip("\n")
        raw = source if source_raw is None else source_raw.rstrip("\n")
        if self._exit_re.match(raw.strip()):
            return
        self.input_hist_parsed.append(source)
        self.input_hist_raw.append(raw)
        names = self.shell.user_ns
        latest = getattr(self, "latest", "")
        shifted = {"_iii": names.get("_ii", ""), "_ii": names.get("_i", ""), "_i": latest, f"_i{line_num}": raw}
        self.latest = raw
        names.update(shifted)
        self.shell.user_ns_hidden.update(shifted)

    def store_output(self, line_num: int) -> None:
        """There is no database to store it in."""

    def end_session(self) -> None:
        """Nor a session to end."""


class Hook(DisplayHook):
    """The value of the cell."""

    def quiet(self) -> bool:
        cells = self.shell.history_manager.input_hist_parsed
        return bool(cells) and ";" in cells[-1] and bool(self.semicolon_at_end_of_expression(cells[-1]))

    def write_output_prompt(self) -> None:
        """No prompt: the client numbers results itself."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        self.shell.publisher.display(format_dict, main=True)

    def finish_displayhook(self) -> None:
        """Nothing to flush."""

    def cull_cache(self) -> None:
        """Drops old values from Out without the warning IPython would print into the user's stderr."""
        kept = self.shell.user_ns.get("_oh", {})
        for number in sorted(kept)[: max(int(len(kept) * self.cull_fraction), 2)]:
            self.shell.user_ns.pop(f"_{number}", None)
            kept.pop(number, None)


class CellDisplay(DisplayPublisher):
    """display() and friends. Updates of earlier output have no place in a stream of results."""

    def publish(self, data: Any, metadata: Any = None, *_args: Any, update: bool = False, **_rest: Any) -> None:
        self._validate_data(data, metadata)
        if not update:
            self.shell.publisher.display(display.with_chart(data), main=False)

    def clear_output(self, wait: bool = False) -> None:
        """Results already sent stay."""


class Memory(dict):
    """ip.db without a folder on disk."""

    def __init__(self, _root: Any = None) -> None:
        super().__init__()


class Shell(InteractiveShell):
    publisher: Publisher
    loop: CellLoop | None = None
    leaving = False

    def init_profile_dir(self, profile_dir: Any) -> None:
        self.profile_dir = _Nowhere()

    def init_history(self) -> None:
        self.history_manager = History(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def init_display_formatter(self) -> None:
        self.display_formatter = display.build(self)
        self.configurables.append(self.display_formatter)
        self.inline = InlineBackend(self)
        self.configurables.append(self.inline)

    def init_hooks(self) -> None:
        super().init_hooks()
        self.set_hook("show_in_pager", _drop_page, 99)

    def init_events(self) -> None:
        super().init_events()
        self.events.register("post_execute", self._flush_figures)

    def init_virtualenv(self) -> None:
        """The interpreter was chosen by who started us."""

    def _flush_figures(self) -> None:
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is not None and helpers.Gcf.figs:
            self.publisher.flush()
            from . import figures

            figures.flush()

    # -- running ---------------------------------------------------------------------------------------------

    def run_cell(
        self,
        raw_cell: str,
        store_history: bool = False,
        silent: bool = False,
        shell_futures: bool = True,
        cell_id: Any = None,
    ) -> ExecutionResult:
        failure = None
        try:
            cell = self.transform_cell(raw_cell)
        except Exception:
            cell, failure = raw_cell, sys.exc_info()
        run = self.run_cell_async(
            raw_cell,
            store_history=store_history,
            silent=silent,
            shell_futures=shell_futures,
            transformed_cell=cell,
            preprocessing_exc_tuple=failure,
            cell_id=cell_id,
        )
        result = None
        try:
            result = _drive(run)
        except BaseException as error:
            result = ExecutionResult(ExecutionInfo(raw_cell, store_history, silent, shell_futures, cell_id))
            result.error_in_exec = error
            self.showtraceback(running_compiled_code=True)
        finally:
            self.events.trigger("post_execute")
            if not silent:
                self.events.trigger("post_run_cell", result)
        return result

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        run = super().run_code(code_obj, result, async_=async_)
        if async_ and self.loop is not None and not self.loop.is_running():
            return self.loop.run_cell(run)
        return await run

    def transform_cell(self, raw_cell: str) -> str:
        if IPYTHON_SYNTAX.search(raw_cell) or self._has_own_transformers():
            return super().transform_cell(raw_cell)
        cell = raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        if cell.find("\n") == len(cell) - 1 and self._may_be_command(cell):
            return super().transform_cell(raw_cell)
        return cell

    def _has_own_transformers(self) -> bool:
        manager = self.input_transformer_manager
        shape = (len(manager.cleanup_transforms), len(manager.line_transforms), len(manager.token_transformers))
        if self._transformers is None:
            self._transformers = shape
        return shape != self._transformers or bool(self.input_transformers_post)

    _transformers: tuple[int, int, int] | None = None

    def _may_be_command(self, line: str) -> bool:
        """Could a single line start with a magic without its mark (`ls`), a macro, or `exit`?"""
        name = FIRST_NAME.match(line)
        if name is None:
            return False
        word = name[0]
        if word in self.user_ns:
            return isinstance(self.user_ns[word], (IPyAutocall, Macro))
        return bool(self.automagic) and self.find_line_magic(word) is not None

    def ask_exit(self) -> None:
        """exit() and quit(): the kernel leaves after this run."""
        self.leaving = True

    def system_piped(self, cmd: str) -> None:
        """`!cmd`, and through it %pip: packages installed by it can be imported at once."""
        self.user_ns["_exit_code"] = terminal.run(self.var_expand(cmd, depth=1))
        for folder in site.getsitepackages():
            if folder not in sys.path and os.path.isdir(folder):
                site.addsitedir(folder)
        importlib.invalidate_caches()

    system = system_piped

    def forget(self, names: dict[str, Any], hidden: dict[str, Any]) -> None:
        """Back to the first cell, with these names: what the warm-up of a nursery left is gone."""
        self.execution_count = 1
        history = self.history_manager
        history.input_hist_parsed[:] = [""]
        history.input_hist_raw[:] = [""]
        history.latest = ""
        history.output_hist.clear()
        history.output_hist_reprs.clear()
        for live, kept in ((self.user_ns, names), (self.user_ns_hidden, hidden)):
            live.clear()
            live.update(kept)
        self.displayhook._ = self.displayhook.__ = self.displayhook.___ = ""
        for name in self.compile._filename_map:
            linecache.cache.pop(name, None)
        self.compile._filename_map.clear()
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)

    # -- matplotlib ------------------------------------------------------------------------------------------

    def enable_matplotlib(self, gui: str | None = None) -> tuple[Any, Any]:
        if gui not in INLINE_NAMES:
            return super().enable_matplotlib(gui)
        from . import figures

        figures.activate()
        return "inline", figures.BACKEND

    def enable_gui(self, gui: str | None = None) -> None:
        """There is no screen, so no toolkit to run."""

    # -- errors ----------------------------------------------------------------------------------------------

    def showtraceback(
        self,
        exc_tuple: Any = None,
        filename: str | None = None,
        tb_offset: int | None = None,
        exception_only: bool = False,
        running_compiled_code: bool = False,
    ) -> None:
        error = (exc_tuple or sys.exc_info())[1]
        if error is None or exception_only or not self._can_trace(error):
            super().showtraceback(exc_tuple, filename, tb_offset, exception_only, running_compiled_code)
            return
        self._get_exc_info(exc_tuple)  # remembers it for %tb and %debug
        if _has_group(error):
            trace = "".join(traceback.format_exception(error)).splitlines()
        else:
            trace = traces.pieces(error, self.compile.format_code_name)
        self._showtraceback(type(error), error, trace)

    def _can_trace(self, error: BaseException) -> bool:
        """Leaves to IPython what is special: its own usage errors, syntax errors, other %xmodes, own renderings."""
        if isinstance(error, (SyntaxError, UsageError)) or hasattr(error, "_render_traceback_"):
            return False
        return self.InteractiveTB.mode == "Context" and not self.call_pdb

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        self.publisher.error(_class_name(etype), safe_str(evalue), [str(part) for part in stb])


class _Nowhere(interactiveshell.ProfileDir):
    """A profile folder that is never made."""

    def check_dirs(self) -> None:
        """Leaves the disk alone."""

    def __init__(self) -> None:
        super().__init__()
        self._trait_values["location"] = os.path.join(os.sep, "nonexistent")


def build(publisher: Publisher) -> Shell:
    """The one shell of this process."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    config.InteractiveShell.banner1 = ""
    config.InteractiveShell.display_page = False
    config.Completer.use_jedi = False
    Shell.publisher = publisher
    with _in_memory():
        shell = Shell.instance(config=config, displayhook_class=Hook, display_pub_class=CellDisplay)
    shell.user_ns["_dh"][:] = [os.getcwd()]
    shell._has_own_transformers()
    builtins.input = _refuse_input  # type: ignore[assignment]
    getpass.getpass = _refuse_password  # type: ignore[assignment]
    imports.when_imported("matplotlib", _adopt_matplotlib)
    imports.when_imported("PIL.Image", _adopt_pil)
    return shell


@contextmanager
def _in_memory() -> Any:
    """IPython opens a small database in its profile folder; ours is a dict."""
    original = getattr(interactiveshell, "PickleShareDB", None)
    interactiveshell.PickleShareDB = Memory
    try:
        yield
    finally:
        interactiveshell.PickleShareDB = original


def _adopt_matplotlib(module: Any) -> None:
    if "MPLBACKEND" not in os.environ:
        module.rcParams["backend"] = "module://cloche_kernel.figures"
        module.interactive(True)


def _adopt_pil(module: Any) -> None:
    from . import images

    images.hook(module)


def _drive(run: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine that never really waits (what waits inside it has its own loop turn)."""
    try:
        run.send(None)
    except StopIteration as end:
        return end.value
    run.close()
    raise RuntimeError("the cell awaits, but its loop is busy")


def _refuse_input(prompt: Any = "") -> str:
    raise StdinNotImplementedError("input() was called, but nobody can answer: this sandbox has no standard input.")


def _refuse_password(prompt: str = "Password: ", stream: Any = None) -> str:
    raise StdinNotImplementedError("getpass() was called, but nobody can answer: this sandbox has no standard input.")


def _drop_page(*_args: Any, **_kwargs: Any) -> None:
    """The pager's text (`name?`) is not part of a cell's output."""


def _has_group(error: BaseException | None) -> bool:
    seen = 0
    while error is not None and seen < 64:
        if isinstance(error, BaseExceptionGroup):
            return True
        error, seen = error.__context__, seen + 1
    return False


def _class_name(etype: Any) -> str:
    return str(getattr(etype, "__name__", etype))


def safe_str(value: Any) -> str:
    """str() that survives a broken __str__."""
    try:
        return str(value)
    except Exception:
        return f"<unprintable {type(value).__name__}>"
