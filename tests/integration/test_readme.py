"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Project

README = Path(__file__).parents[2] / "README.md"


def code_blocks(heading: str) -> dict[str, str]:
    """Return the code blocks below a heading of the README, by language."""
    section = README.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL))


def test_smallest_start_works(empty_project: Project) -> None:
    """Ten lines of conftest, ten of YAML and three of ini are a suite: asked once, replayed from then on."""
    blocks = code_blocks("Start in your own project")
    assert {name: len(text.splitlines()) for name, text in blocks.items()} == {
        "python": 10,
        "yaml": 10,
        "ini": 3,
    }
    empty_project.write("conftest.py", blocks["python"])
    empty_project.write("golden.yaml", blocks["yaml"])
    empty_project.write("pytest.ini", blocks["ini"])
    empty_project.write(
        "my_agent.py",
        """
def ask(question, context):
    assert question in context
    if "status" in question:
        return {"columns": ["status", "n"], "rows": [["open", 39], ["shipped", 60]]}
    return 'There are: {"columns": ["n"], "rows": [[99]]}'
""",
    )
    empty_project.write(
        "my_context.py", 'def build(question):\n    return "## Question\\n" + question + "\\n"\n'
    )
    run = empty_project.run_apart
    run().stdout.fnmatch_lines(["answers*0 hit, 2 miss", "*2 passed*"])
    result = run()
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*", "*2 passed*"])
    assert "warning" not in result.stdout.str()


def test_golden_file_shown_is_valid(empty_project: Project) -> None:
    """The golden file of the README can be read."""
    empty_project.write("golden.yaml", code_blocks("Golden files")["yaml"])
    result = empty_project.run("--co", "-q")
    result.stdout.fnmatch_lines(["golden.yaml::revenue_by_month", "*::orders_are_stale", "*::refunds"])
