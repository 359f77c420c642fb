# SPDX-License-Identifier: Apache-2.0
"""Boxes and contexts are forks of one loaded Python: what must differ between them does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import e2b_code_interpreter as interpreter
import pytest

from support.pythons import pythons, warm_box

COUNT = 6  # more than the pool holds: both kinds of launch are among them

DRAWS = {
    "random": "import random; random.random()",
    "random.SystemRandom": "import random; random.SystemRandom().random()",
    "secrets": "import secrets; secrets.token_hex(16)",
    "os.urandom": "import os; os.urandom(16).hex()",
    "uuid4": "import uuid; str(uuid.uuid4())",
    "uuid1": "import uuid; str(uuid.uuid1())",
    "numpy.random": "import numpy; float(numpy.random.random())",
    "numpy.random.default_rng": "import numpy; float(numpy.random.default_rng().random())",
    "numpy shuffle": "import numpy; numpy.random.permutation(50).tolist()",
    "pandas sample": "import pandas; pandas.Series(range(200)).sample(20).tolist()",
    "ssl": "import ssl; ssl.RAND_bytes(16).hex()",
    "numpy's words": "import numpy; numpy.random.get_state()[1][:4].tolist()",
    "numpy normal": "import numpy; float(numpy.random.standard_normal())",
    "tempfile": "import tempfile; tempfile.mktemp()",
    "authkey": "import multiprocessing as m; bytes(m.current_process().authkey).hex()",
    "the kernel's uuid": "open('/proc/sys/kernel/random/uuid').read()",
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[list[interpreter.Sandbox]]:
    made = [interpreter.Sandbox.create(timeout=300) for _ in range(COUNT)]
    yield made
    for box in made:
        box.kill()


def texts(boxes: list[interpreter.Sandbox], code: str) -> list[str]:
    answers = []
    for box in boxes:
        done = box.run_code(code)
        assert done.error is None, done.error
        assert done.text
        answers.append(done.text)
    return answers


@pytest.mark.parametrize("code", DRAWS.values(), ids=DRAWS.keys())
def test_no_two_boxes_draw_the_same(boxes: list[interpreter.Sandbox], code: str) -> None:
    answers = texts(boxes, code)
    for one, other in combinations(answers, 2):
        assert one != other


@pytest.mark.parametrize("code", DRAWS.values(), ids=DRAWS.keys())
def test_no_two_contexts_of_a_box_draw_the_same(
    boxes: list[interpreter.Sandbox], code: str
) -> None:
    box = boxes[0]
    contexts = [box.create_code_context() for _ in range(3)]
    try:
        answers = [box.run_code(code, context=context).text for context in contexts]
        answers.append(box.run_code(code).text)
    finally:
        for context in contexts:
            box.remove_code_context(context)
    assert len(set(answers)) == len(answers)


def test_a_box_has_one_python_until_it_asks_for_more() -> None:
    box = warm_box()
    try:
        assert len(pythons(box)) == 1
        context = box.create_code_context()
        assert box.run_code("6 * 7", context=context).text == "42"
        more = pythons(box)
        assert len(more) >= 3  # the first kernel, what forks the others, the second
        assert {line.endswith("--zygote") for line in more} == {True}
    finally:
        box.kill()


# As pip would: another version of a library that is loaded already, before the old one on the path.
INSTALL = (
    "d=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))');"
    " mkdir -p $d/{0} && echo 'VERSION = \"installed\"' > $d/{0}/__init__.py"
)
VERSION = "import {0}; getattr({0}, 'VERSION', 'old')"


def test_new_contexts_have_what_was_installed_meanwhile() -> None:
    box = warm_box()
    try:
        assert box.run_code(VERSION.format("pandas")).text == "old"
        contexts = [box.create_code_context()]  # now there is what forks kernels, and a spare one
        assert box.run_code(VERSION.format("PIL"), context=contexts[0]).text == "old"
        for name in ("pandas", "PIL"):
            box.commands.run(INSTALL.format(name), user="root")
        contexts += [box.create_code_context() for _ in range(3)]
        for context in contexts[1:]:
            for name in ("pandas", "PIL"):
                done = box.run_code(VERSION.format(name), context=context)
                assert done.text == "installed", done.error
            assert box.run_code("import os; os.getcwd()", context=context).text == "/home/user"
        assert box.run_code(VERSION.format("pandas")).text == "old"  # who has it goes on with it
        box.restart_code_context(contexts[0])
        assert box.run_code(VERSION.format("pandas"), context=contexts[0]).text == "installed"
    finally:
        box.kill()


def test_a_first_cell_finds_what_was_installed_before_it() -> None:
    box = interpreter.Sandbox.create(timeout=300, envs={"GIVEN": "yes"})
    try:
        box.commands.run(INSTALL.format("pandas"), user="root")
        done = box.run_code(VERSION.format("pandas"), envs={"HERE": "too"})
        assert done.text == "installed", done.error
        assert box.run_code("import os; os.environ['GIVEN'], os.environ.get('HERE')").text == "('yes', None)"
        assert box.run_code("x = 1; x").text == "1"
        assert done.execution_count == 1
    finally:
        box.kill()


def test_a_first_kernel_that_dies_is_followed_by_another() -> None:
    box = warm_box()
    try:
        died = box.run_code("x = 1; import os; os.kill(os.getpid(), 9)")
        assert died.error is not None
        assert box.run_code("'x' in globals(), 1 + 1").text == "(False, 2)"
    finally:
        box.kill()


def test_every_box_has_its_own_id_and_token_and_the_name_all_share(
    boxes: list[interpreter.Sandbox],
) -> None:
    own = texts(boxes, "import os; os.environ['E2B_SANDBOX_ID']")
    assert own == [box.sandbox_id for box in boxes]
    tokens = {box._envd_access_token for box in boxes}
    assert len(tokens) == COUNT
    assert None not in tokens
    assert set(texts(boxes, "import socket; socket.gethostname()")) == {"e2b.local"}


def test_every_box_is_a_machine_of_its_own(boxes: list[interpreter.Sandbox]) -> None:
    told = texts(boxes, "open('/etc/machine-id').read().strip()")
    assert len(set(told)) == COUNT, told
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in told), told


def test_clocks_and_process_ids_are_the_box_s_own(boxes: list[interpreter.Sandbox]) -> None:
    ages = texts(
        boxes, "import time; now = time.time(); time.sleep(0.01); 0.005 < time.time() - now < 60"
    )
    assert set(ages) == {"True"}
    for pid in texts(boxes, "import os; os.getpid()"):
        assert 1 < int(pid) < 1000
    assert set(texts(boxes, "import threading; threading.get_native_id() == os.getpid()")) == {
        "True"
    }


def test_what_the_user_makes_is_counted_and_freed(boxes: list[interpreter.Sandbox]) -> None:
    done = boxes[1].run_code(
        "import gc, sys, weakref\n"
        "class Held: pass\n"
        "held, told = Held(), []\n"
        "watch = weakref.ref(held, lambda _: told.append('freed'))\n"
        "counted = sys.getrefcount(held)\n"
        "del held\n"
        "ring = Held(); ring.own = ring; around = weakref.ref(ring)\n"
        "del ring\n"
        "_ = gc.collect()\n"
        "(counted, told, watch() is None, around() is None)"
    )
    assert done.text == "(2, ['freed'], True, True)"


def test_memory_comes_back_after_large_objects(boxes: list[interpreter.Sandbox]) -> None:
    done = boxes[2].run_code(
        "import numpy, pandas\n"
        "def held():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(line for line in lines if 'RssAnon' in line).split()[1])\n"
        "before = held()\n"
        "for _ in range(5):\n"
        "    frame = pandas.DataFrame(numpy.ones((1_000_000, 10)))\n"
        "    total = float(frame.sum().sum())\n"
        "del frame\n"
        "(total, held() - before < 60_000)"
    )
    assert done.text == "(10000000.0, True)"


def test_a_box_s_changes_to_shared_modules_stay_its_own(boxes: list[interpreter.Sandbox]) -> None:
    boxes[3].run_code("import math, json; math.pi = 3; json.mark = 'mine'; del json.dumps")
    assert texts(boxes[4:5], "import math, json; (round(math.pi, 5), hasattr(json, 'mark'))") == [
        "(3.14159, False)"
    ]
    assert texts(boxes[4:5], "json.dumps([1])") == ["[1]"]


def test_the_scheduler_tells_a_fork_where_it_runs(boxes: list[interpreter.Sandbox]) -> None:
    done = boxes[5].run_code(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "seen = []\n"
        "for cpu in sorted(os.sched_getaffinity(0)):\n"
        "    os.sched_setaffinity(0, {cpu})\n"
        "    seen.append(libc.sched_getcpu() == cpu)\n"
        "all(seen)"
    )
    assert done.text == "True"


def test_a_fork_has_few_mappings_and_its_objects_in_one_range(
    boxes: list[interpreter.Sandbox],
) -> None:
    """Each mapping costs every launch and death; hundreds of small ones are what an unprepared Python has."""
    libraries = "len({line.split()[-1] for line in open('/proc/self/maps') if '.so' in line})"
    done = boxes[0].run_code(f"(len(open('/proc/self/maps').readlines()) / {libraries}) < 4")
    assert done.text == "True"
    apart = boxes[0].run_code(
        "import gc\n"
        "pieces = {id(each) >> 29 for each in gc.get_objects() if id(each) >> 40}\n"
        "held = [bytearray(400) for _ in range(50_000)]\n"
        "len(pieces | {id(each) >> 29 for each in held if id(each) >> 40}) <= 4"
    )
    assert apart.text == "True"


def test_who_rings_without_need_is_heard_once() -> None:
    """A box asks for more kernels by a ring; its root could ring without end."""
    with interpreter.Sandbox.create(timeout=120) as box:
        done = box.run_code(
            "import socket, time\n"
            "heard, end = 0, time.time() + 10\n"
            "while time.time() < end:\n"
            "    ring = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)\n"
            "    try:\n"
            "        ring.connect(b'\\0cloche-nursery-python')\n"
            "        heard += 1\n"
            "    except ConnectionRefusedError:\n"
            "        break\n"
            "(heard > 0, time.time() < end)"
        )
        assert done.text == "(True, True)"
        context = box.create_code_context()
        assert box.run_code("1 + 1", context=context).text == "2"
