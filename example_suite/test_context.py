"""What the model sees: a change of any layer fails here, and says which layer it was."""

from shop.assembler import assemble


def test_plain_question(ctx_snapshot):
    """A first question sees every layer, and nothing recent."""
    ctx_snapshot.check(assemble("How many orders are there?", {}))


def test_follow_up(ctx_snapshot):
    """A follow-up sees what was asked before; what that was is not pinned."""
    inputs = {"history": ["What is the revenue?"]}
    ctx_snapshot.check(assemble("And in country NZ?", inputs), ignore=("Recent*", "Question"))


def test_time_of_day(ctx_snapshot):
    """A question about freshness sees the present time, pinned without its digits."""
    context = assemble("Are the orders fresh?", {"now": "2024-07-12 20:00"})
    ctx_snapshot.check(context, ignore=(), redact=((r"\d{4}-\d\d-\d\d \d\d:\d\d", "<now>"),))


def test_two_questions(ctx_snapshot):
    """Two questions in one test have a snapshot each, by name."""
    for name, question in {"money": "What is the revenue?", "goods": "How many units were sold?"}.items():
        ctx_snapshot.check(assemble(question, {}), name=name)
