"""An existing suite that uses the trace cache by a decorator on its helper, or by ``ctx_trace.call``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

INI = """[pytest]
ctx_agent_paths = agent
ctx_model = stub-1
addopts = -p no:cacheprovider
pythonpath = .
"""

CLIENT = '''
"""A client that remembers what it was told, and notes every request."""
import json
import pathlib

HERE = pathlib.Path(__file__).parent


class Client:
    def __init__(self):
        if (HERE / "no_key").exists():
            self.key = None
        else:
            self.key = "secret"
        self.heard = []

    def send(self, question):
        if self.key is None:
            raise RuntimeError("no credentials")
        self.heard.append(question)
        with open(HERE / "calls.txt", "a", encoding="utf-8") as log:
            log.write(question + "\\n")
        return {"text": "30 days", "heard": list(self.heard), "pair": (1, 2.5)}

    async def send_later(self, question):
        return self.send(question)
'''

CONFTEST = """
import pytest
from client import Client


@pytest.fixture
def client():
    return Client()
"""

HELPERS = """
from pytest_ctxfp import cached_call


@cached_call(ignore=["client"])
def ask(client, question):
    return client.send(question)


@cached_call(ignore=["client"])
async def ask_later(client, question):
    return await client.send_later(question)
"""


@pytest.fixture
def suite(empty_project: Project) -> Project:
    """An existing suite: a client, a helper that asks it, and no golden file."""
    empty_project.write("pytest.ini", INI)
    empty_project.write("client.py", CLIENT)
    empty_project.write("conftest.py", CONFTEST)
    empty_project.write("helpers.py", HELPERS)
    empty_project.write("agent/prompt.md", "Be brief.\n")
    return empty_project


def asked(suite: Project) -> list[str]:
    """Return the requests since the last time, in order."""
    log = suite.path / "calls.txt"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def stored(suite: Project) -> dict[str, object]:
    """Return the stored answers by question, of each the newest."""
    traces = [json.loads(path.read_text(encoding="utf-8")) for path in suite.traces()]
    traces.sort(key=lambda trace: trace["recorded_at"])
    return {trace["question"]: trace["result"] for trace in traces}


SYNC = """
from helpers import ask


def test_refund(client):
    answer = ask(client, "How long?")
    assert "30 days" in answer["text"]
    assert answer["pair"] == [1, 2.5]


def test_other(client):
    assert "days" in ask(client, question="And shoes?")["text"]
"""

CALLS = {
    "sync": """
def test_refund(client, ctx_trace):
    answer = ctx_trace.call("refund", lambda: client.send("How long?"))
    assert "30 days" in answer["text"] and answer["pair"] == [1, 2.5]


def test_other(client, ctx_trace):
    assert ctx_trace.call("other", lambda: client.send_later("And shoes?"))["text"]
""",
    "asyncio": """
import pytest
pytestmark = pytest.mark.asyncio


async def test_refund(client, ctx_trace):
    answer = await ctx_trace.call("refund", lambda: client.send_later("How long?"))
    assert "30 days" in answer["text"] and answer["pair"] == [1, 2.5]


async def test_other(client, ctx_trace):
    assert (await ctx_trace.call("other", lambda: client.send("And shoes?")))["text"]
""",
    "sync-helper": SYNC,
    "asyncio-helper": """
import pytest
from helpers import ask_later
pytestmark = pytest.mark.asyncio


async def test_refund(client):
    answer = await ask_later(client, "How long?")
    assert "30 days" in answer["text"] and answer["pair"] == [1, 2.5]


async def test_other(client):
    assert (await ask_later(client, "And shoes?"))["text"]
""",
}
CALLS["anyio"] = CALLS["asyncio"].replace("mark.asyncio", "mark.anyio")
CALLS["anyio-helper"] = CALLS["asyncio-helper"].replace("mark.asyncio", "mark.anyio")
PLUGINS = {
    "asyncio": ["-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function"],
    "anyio": ["-p", "anyio"],
}
ANYIO = "\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"


def use(suite: Project, kind: str) -> list[str]:
    """Write the tests of a kind; return the arguments that they need."""
    suite.write("test_support.py", CALLS[kind])
    if kind.startswith("anyio"):
        suite.write("conftest.py", CONFTEST + ANYIO)
    return PLUGINS.get(kind.removesuffix("-helper"), [])


KINDS_AND_WAYS = [
    *((kind, "plain") for kind in CALLS),
    *((kind, way) for kind in ("sync", "asyncio-helper") for way in ("xdist", "without-xdist")),
]


@pytest.mark.parametrize(("kind", "how"), KINDS_AND_WAYS, indirect=["how"])
def test_second_run_asks_nobody(suite: Project, how: list[str], kind: str) -> None:
    """Sync and async, by decorator and by fixture: the second run makes no call, sees the same types, and
    the summary counts calls, hits and unknown costs.
    """
    flags = ["--ctx-cache", *use(suite, kind), *how]
    result = suite.run(*flags)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["calls*2: 0 hit, 2 miss", "cost*spent an unknown amount in 2 calls*"])
    assert sorted(asked(suite)) == ["And shoes?", "How long?"]
    result = suite.run(*flags)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["calls*2: 2 hit, 0 miss; oldest hit*", "cost*0 calls, saved an unknown*"])
    assert asked(suite) == []


@pytest.mark.parametrize("kind", ["sync-helper", "asyncio-helper"])
def test_without_the_cache_the_decorator_does_nothing(suite: Project, kind: str) -> None:
    """Outside a run with the cache on the helper is called as it is, with its own types, silently."""
    flags = use(suite, kind)
    suite.edit("test_support.py", "[1, 2.5]", "(1, 2.5)")
    result = suite.run(*flags)
    result.assert_outcomes(passed=2)
    assert "ctxfp" not in result.stdout.str().partition("passed")[0].partition("test_support")[2]
    assert not (suite.path / ".ctxfp").exists()
    assert len(asked(suite)) == 2


CONVERSATION = """
from helpers import ask


def test_talk(client):
    first = ask(client, "I am Bob")
    second = ask(client, "Where is my order?")
    third = ask(client, "Who am I?")
    assert third["text"]
"""
TALKS = {
    "helper": CONVERSATION,
    "fixture": CONVERSATION.replace("client)", "client, ctx_trace)", 1)
    .replace(
        'ask(client, "I am Bob")', 'ctx_trace.call("1", lambda: client.send("I am Bob"), question="I am Bob")'
    )
    .replace(
        'ask(client, "Where is my order?")',
        'ctx_trace.call("2", lambda: client.send("Where is my order?"), question="Where is my order?")',
    )
    .replace(
        'ask(client, "Who am I?")',
        'ctx_trace.call("3", lambda: client.send("Who am I?"), question="Who am I?")',
    ),
}


@pytest.mark.parametrize("talk", TALKS)
def test_edited_second_turn_holds_the_whole_conversation_anew(suite: Project, talk: str) -> None:
    """After an edit of turn 2 of 3, turns 1, 2 and 3 run, in order, once, and what is stored is what a client
    says that has heard the whole conversation.
    """
    suite.write("test_talk.py", TALKS[talk])
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["I am Bob", "Where is my order?", "Who am I?"]
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == []
    text = (suite.path / "test_talk.py").read_text(encoding="utf-8")
    suite.write("test_talk.py", text.replace("Where is my order?", "Where are my shoes?"))
    result = suite.run("--ctx-cache")
    result.assert_outcomes(passed=1)
    turns = ["I am Bob", "Where are my shoes?", "Who am I?"]
    assert asked(suite) == turns
    answers = stored(suite)
    assert [answers[turn]["heard"] for turn in turns] == [turns[:1], turns[:2], turns]  # type: ignore[index]
    result.stdout.fnmatch_lines(
        [
            "calls*3: 0 hit, 2 miss, 1 asked again before a miss",
            "missed*1 question*",
            "*1 an earlier call of the test",
        ]
    )
    result.stdout.fnmatch_lines(["cost*in 3 calls, saved 0.0000 USD"])
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == []


def test_second_turn_is_keyed_on_the_first(suite: Project) -> None:
    """The same question after another one is another question, and once one is asked all that follow are."""
    suite.write("test_talk.py", CONVERSATION)
    suite.run("--ctx-cache")
    asked(suite)
    suite.edit("test_talk.py", "I am Bob", "I am Ann")
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["I am Ann", "Where is my order?", "Who am I?"]


def test_lost_answer_in_the_middle_is_not_patched(suite: Project) -> None:
    """Where the stored answer of turn 2 is gone, turn 3 is asked too, though its answer is stored."""
    suite.write("test_talk.py", CONVERSATION)
    suite.run("--ctx-cache")
    asked(suite)
    for path in suite.traces():
        if json.loads(path.read_text(encoding="utf-8"))["question"] == "Where is my order?":
            path.unlink()
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["I am Bob", "Where is my order?", "Who am I?"]


@pytest.mark.parametrize("kind", ["asyncio", "anyio"])
def test_async_conversation(suite: Project, kind: str) -> None:
    """A conversation of three turns in an async test is held anew as a sync one is."""
    flags = use(suite, f"{kind}-helper")
    body = CONVERSATION.replace("ask(", "await ask_later(").replace("import ask", "import ask_later")
    body = body.replace("def test", f"import pytest\n@pytest.mark.{kind}\nasync def test")
    suite.write("test_support.py", body)
    suite.run("--ctx-cache", *flags).assert_outcomes(passed=1)
    asked(suite)
    suite.edit("test_support.py", "Where is my order?", "Where are my shoes?")
    suite.run("--ctx-cache", *flags).assert_outcomes(passed=1)
    assert asked(suite) == ["I am Bob", "Where are my shoes?", "Who am I?"]
    suite.run("--ctx-cache", *flags).assert_outcomes(passed=1)
    assert asked(suite) == []


def test_refresh_asks_every_turn_once(suite: Project) -> None:
    """``--ctx-refresh`` holds the conversation anew, and counts three refreshed calls."""
    suite.write("test_talk.py", CONVERSATION)
    suite.run("--ctx-cache")
    asked(suite)
    result = suite.run("--ctx-refresh")
    result.stdout.fnmatch_lines(["calls*3: 0 hit, 0 miss, 3 refreshed"])
    assert asked(suite) == ["I am Bob", "Where is my order?", "Who am I?"]


POOL = """
from concurrent.futures import ThreadPoolExecutor
from helpers import ask


def test_many(client):
    assert ask(client, "hello")["text"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: ask(client, f"question {n}")["text"], range(8)))
    assert answers == ["30 days"] * 8
    assert ask(client, "bye")["text"]
"""


def test_thread_pool(suite: Project) -> None:
    """A helper called from a pool's threads finds its test; the order of the threads decides nothing."""
    suite.write("test_many.py", POOL)
    result = suite.run("--ctx-cache")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["calls*10: 0 hit, 10 miss"])
    assert len(asked(suite)) == 10
    for _ in range(3):
        result = suite.run("--ctx-cache")
        result.stdout.fnmatch_lines(["calls*10: 10 hit, 0 miss*"])
        assert asked(suite) == []


def test_thread_of_an_async_test_keeps_the_conversation(suite: Project) -> None:
    """``asyncio.to_thread`` runs one turn after the other: turn 2 is keyed on turn 1 there too."""
    suite.write(
        "test_talk.py",
        "import asyncio, pytest\nfrom helpers import ask\n\n\n@pytest.mark.asyncio\n"
        "async def test_talk(client):\n"
        '    await asyncio.to_thread(ask, client, "I am Bob")\n'
        '    await asyncio.to_thread(ask, client, "Who am I?")\n',
    )
    suite.run("--ctx-cache", *PLUGINS["asyncio"]).assert_outcomes(passed=1)
    asked(suite)
    suite.edit("test_talk.py", "I am Bob", "I am Ann")
    suite.run("--ctx-cache", *PLUGINS["asyncio"]).assert_outcomes(passed=1)
    assert asked(suite) == ["I am Ann", "Who am I?"]


RETRIEVAL = """
import pytest
from client import Client
from pytest_ctxfp import cached_call


@cached_call(agent=False, chain=False, cost=0)
def retrieve(question):
    return Client().send("find: " + question)["text"]


@pytest.fixture
def ctx_assembler():
    def assemble(question):
        return "## Documents\\n" + retrieve(question) + "\\n## Question\\n" + question + "\\n"

    return assemble


@pytest.fixture
def ctx_agent():
    client = Client()

    def ask(question, context):
        client.send(question)
        return {"columns": ["n"], "rows": [[99]]}

    return ask
"""


def test_cached_retrieval_needs_no_credentials(suite: Project) -> None:
    """With retrieval cached by ``cached_call``, a golden suite runs under ``--ctx-on-miss=fail`` without any
    credentials; and an edit of the agent doesn't retrieve again.
    """
    suite.write("conftest.py", RETRIEVAL)
    suite.write(
        "golden.yaml", "cases:\n  - {id: n, question: how many?, match: scalar, expected: {rows: [[99]]}}\n"
    )
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["find: how many?", "how many?"]
    suite.write("no_key", "")
    suite.run("--ctx-on-miss=fail").assert_outcomes(passed=1)
    assert asked(suite) == []
    (suite.path / "no_key").unlink()
    suite.write("agent/prompt.md", "Be long.\n")
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["how many?"]


def test_refused_call_fails_or_skips(suite: Project) -> None:
    """Without a stored answer ``--ctx-on-miss=fail`` fails the test with reason and command, ``skip`` skips
    it, and nobody is asked.
    """
    suite.write("test_support.py", SYNC)
    suite.write("no_key", "")
    result = suite.run("--ctx-on-miss=fail")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*no stored answer (new call); asking would cost an unknown amount*"])
    result.stdout.fnmatch_lines(["*ask and store it: pytest test_support.py::test_refund --ctx-cache*"])
    suite.run("--ctx-on-miss=skip").assert_outcomes(skipped=2)
    assert asked(suite) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("agent/prompt.md", "brief", "long", "agent: agent/prompt.md"),
        ("test_support.py", "How long?", "How many days?", "question"),
        (
            "helpers.py",
            "def ask(client, question):\n",
            "def ask(client, question):\n    pass\n",
            "the helper's own code",
        ),
        ("pytest.ini", "stub-1", "stub-2", "model: stub-1 -> stub-2"),
    ],
)
def test_what_decides_an_answer_is_in_the_key(
    suite: Project, file: str, old: str, new: str, why: str
) -> None:
    """An edit of the agent, the question, the helper or the model asks again and says why."""
    suite.write("test_support.py", SYNC.partition("def test_other")[0])
    suite.run("--ctx-cache")
    asked(suite)
    suite.edit(file, old, new)
    suite.run("--ctx-cache").stdout.fnmatch_lines(["calls*1: 0 hit, 1 miss", f"missed*1 {why}"])
    assert len(asked(suite)) == 1


def test_edited_assertion_asks_nobody(suite: Project) -> None:
    """What a test expects of an answer, in its body or among its parameters, is not in the key."""
    suite.write(
        "test_p.py",
        "import pytest\nfrom helpers import ask\n\n\n"
        '@pytest.mark.parametrize(("question", "expected"), [("How long?", "30")])\n'
        "def test_p(client, ctx_trace, question, expected):\n"
        '    assert expected in ask(client, question)["text"]\n'
        '    assert expected in ctx_trace.call("b", lambda: client.send(question))["text"]\n',
    )
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["How long?", "How long?"]
    suite.edit("test_p.py", '"30"', '"days"')
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == []
    suite.edit("test_p.py", '"How long?"', '"How many?"')
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["How many?", "How many?"]


def test_parameters_behind_an_ignored_client_are_in_the_key(suite: Project) -> None:
    """Two clients made from a fixture's params don't share an answer, though the client is no part of it."""
    suite.write(
        "conftest.py",
        CONFTEST.replace("@pytest.fixture\n", "@pytest.fixture(params=['eu', 'us'])\n").replace(
            "def client():", "def client(request):"
        ),
    )
    suite.write("test_support.py", SYNC.partition("def test_other")[0])
    suite.run("--ctx-cache").assert_outcomes(passed=2)
    assert len(asked(suite)) == 2
    suite.run("--ctx-cache").assert_outcomes(passed=2)
    assert asked(suite) == []


def test_argument_that_json_cant_hold_is_named(suite: Project) -> None:
    """A client among the arguments is an error that says how to leave it out, never a part of the key."""
    suite.edit("helpers.py", '@cached_call(ignore=["client"])\ndef', "@cached_call\ndef")
    suite.write("test_support.py", SYNC)
    result = suite.run("--ctx-cache")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*argument 'client' of helpers.ask can't be in the key*ignore=*'client'*"])
    assert asked(suite) == []


def test_errors_of_the_helper_stay_its_own(suite: Project) -> None:
    """What the helper raises reaches the test as it is, and is never stored."""
    suite.write("no_key", "")
    suite.write(
        "test_support.py",
        "import pytest\nfrom helpers import ask\n\n\ndef test_it(client):\n"
        '    with pytest.raises(RuntimeError, match="no credentials"):\n        ask(client, "x")\n',
    )
    for _ in range(2):
        result = suite.run("--ctx-cache")
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["calls*1: 0 hit, 0 miss, 1 error"])
    assert suite.traces() == []


def test_answer_that_cant_be_stored_is_an_error(suite: Project) -> None:
    """An object that JSON can't hold is an error at the call, not a text in the cache."""
    suite.write(
        "test_support.py",
        'def test_it(ctx_trace):\n    ctx_trace.call("x", lambda: object())\n',
    )
    result = suite.run("--ctx-cache")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a value of type 'object' is no JSON*"])


def test_call_without_the_cache_gives_the_same_types(suite: Project) -> None:
    """``ctx_trace.call`` with the cache off makes the call, and gives what JSON gives back."""
    suite.write("test_support.py", CALLS["sync"])
    result = suite.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cache*off*", "calls*2: 0 hit, 0 miss, 2 uncached"])
    assert not (suite.path / ".ctxfp").exists()


def test_call_says_what_it_cost(suite: Project) -> None:
    """An ``AgentResult`` gives the test its value, and the summary its cost."""
    suite.write(
        "test_support.py",
        "from pytest_ctxfp import AgentResult\n\n\ndef test_it(ctx_trace):\n"
        '    assert ctx_trace.call("x", lambda: AgentResult("hi", cost=0.25), key={"v": 1}) == "hi"\n',
    )
    suite.run("--ctx-cache").stdout.fnmatch_lines(["cost*spent 0.2500 USD in 1 call, saved 0.0000 USD"])
    suite.run("--ctx-cache").stdout.fnmatch_lines(["cost*spent 0.0000 USD in 0 calls, saved 0.2500 USD"])
    suite.edit("test_support.py", '"v": 1', '"v": 2')
    suite.run("--ctx-cache").stdout.fnmatch_lines(["missed*1 key"])


def test_call_not_of_the_agent_outlives_its_edit(suite: Project) -> None:
    """``agent=False``: an edit of the agent's files asks only what is the agent's."""
    suite.write(
        "test_support.py",
        "def test_it(client, ctx_trace):\n"
        '    ctx_trace.call("find", lambda: client.send("find"), agent=False, chain=False)\n'
        '    ctx_trace.call("ask", lambda: client.send("ask"))\n',
    )
    suite.run("--ctx-cache")
    asked(suite)
    suite.write("agent/prompt.md", "Be long.\n")
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite) == ["ask"]


def test_calls_at_once_are_keyed_in_the_order_they_begin(suite: Project) -> None:
    """Calls gathered in an async test are made at once and hit in the next run, whichever ends first."""
    suite.edit(
        "client.py",
        "async def send_later(self, question):\n",
        "async def send_later(self, question):\n        import asyncio\n\n"
        "        await asyncio.sleep(0.02 * (4 - len(question)))\n",
    )
    suite.write(
        "test_talk.py",
        "import asyncio, pytest\nfrom helpers import ask_later\n\n\n@pytest.mark.asyncio\n"
        "async def test_talk(client):\n"
        '    await asyncio.gather(*(ask_later(client, "x" * n) for n in (1, 2, 3)))\n'
        '    await ask_later(client, "bye")\n',
    )
    suite.run("--ctx-cache", *PLUGINS["asyncio"]).assert_outcomes(passed=1)
    assert asked(suite) == ["xxx", "xx", "x", "bye"]
    for _ in range(2):
        suite.run("--ctx-cache", *PLUGINS["asyncio"]).stdout.fnmatch_lines(["calls*4: 4 hit, 0 miss*"])
    assert asked(suite) == []


def test_helper_within_a_helper_is_no_turn_of_its_own(suite: Project) -> None:
    """What a helper calls inside isn't called on a hit, so what comes after it is not keyed on that."""
    suite.write(
        "helpers.py",
        HELPERS.replace(
            "    return client.send(question)\n",
            "    find(client, question)\n    return client.send(question)\n",
        )
        + "\n\n@cached_call(ignore=['client'], agent=False)\ndef find(client, question):\n"
        "    return client.send('find: ' + question)\n",
    )
    suite.write("test_talk.py", CONVERSATION)
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert len(asked(suite)) == 6
    suite.run("--ctx-cache").stdout.fnmatch_lines(["calls*3: 3 hit, 0 miss*"])
    assert asked(suite) == []
    suite.write("agent/prompt.md", "Be long.\n")
    suite.run("--ctx-cache").assert_outcomes(passed=1)
    assert asked(suite)[:2] == ["I am Bob", "find: Where is my order?"]


def test_test_that_runs_again_begins_a_new_conversation(suite: Project) -> None:
    """A rerun of a failed test takes its first turn as the first, and its answers from the store."""
    fails_once = (
        "    import pathlib\n\n    flag = pathlib.Path(__file__).with_name('flag')\n"
        "    had_run = flag.exists()\n    flag.touch()\n    assert had_run\n"
    )
    suite.write("test_talk.py", CONVERSATION + fails_once)
    result = suite.run("--ctx-cache", "--reruns=1")
    result.stdout.fnmatch_lines(["calls*3: 3 hit, 0 miss*"])
    assert asked(suite) == ["I am Bob", "Where is my order?", "Who am I?"]


def test_conversation_over_the_tests_of_a_class(empty_project: Project) -> None:
    """Calls through a ``ctx_trace`` that a class keeps are chained: an edited turn asks the next one anew."""
    empty_project.write("agent/bot.md", "be right\n")
    empty_project.write("pytest.ini", INI)
    test = """
import pytest

class TestConversation:
    trace = None

    @pytest.fixture(autouse=True)
    def _keep(self, ctx_trace):
        TestConversation.trace = TestConversation.trace or ctx_trace

    def test_1(self):
        assert self.trace.call("hello", lambda: "HELLO1")

    def test_2(self):
        assert self.trace.call("again", lambda: "a") == "a"
"""
    for edited, n_stored in ((test, 2), (test.replace("HELLO1", "HELLO2"), 4)):
        empty_project.write("test_talk.py", edited)
        empty_project.run_apart("--ctx-cache").assert_outcomes(passed=2)
        assert len(empty_project.traces()) == n_stored
