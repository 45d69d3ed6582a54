"""The pytest plug-in: a suite of hooks runs as it is."""

import pytest

SUITE = """
import asyncio
import pytest
from rasa.mantle.hooks import RetryModel
import hooks

def test_signal(model_response_payload):
    with pytest.raises(RetryModel) as raised:
        asyncio.run(hooks.retry(model_response_payload(text="t")))
    assert raised.value.feedback == "x"

def test_engine(tenterhook_engine, request, outgoing_text_payload):
    engine = tenterhook_engine(request.path.parent)
    outcome = asyncio.run(engine.modify(outgoing_text_payload(text="t")))
    assert outcome.changed is False
    assert [hook.function for hook in engine.registered()] == ["retry"]

def test_payloads(
    turn_started_payload, turn_finished_payload, incoming_message_payload, model_request_payload, tool_call_payload,
    tool_result_payload, knowledge_query_payload, knowledge_results_payload,
):
    made = [
        turn_started_payload(), turn_finished_payload(status="error"), incoming_message_payload(text="a"),
        model_request_payload(iteration=2), tool_call_payload(arguments={"a": 1}), tool_result_payload(value="v"),
        knowledge_query_payload(sender_id="me"), knowledge_results_payload(),
    ]
    assert [payload.sender_id for payload in made] == ["test"] * 6 + ["me", "test"]
"""

HOOKS = """
from rasa.mantle.hooks import *

@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    raise RetryModel("x")
"""


def test_a_suite_runs_without_an_installed_rasa(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(hooks=HOOKS, test_hooks=SUITE)
    pytester.syspathinsert()
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("options", "whose"), [([], "real"), (["--tenterhook-names"], "ours"), (["-o", "tenterhook_names=true"], "ours")]
)
def test_where_a_real_rasa_is_installed_ours_is_asked_for(
    pytester: pytest.Pytester, options: list[str], whose: str
) -> None:
    pytester.mkpydir("rasa")
    pytester.mkpydir("rasa/mantle")
    pytester.path.joinpath("rasa/mantle/hooks.py").write_text("", encoding="utf-8")
    pytester.makepyfile(f"""
def test_whose():
    import rasa.mantle.hooks as hooks
    assert hasattr(hooks, "RetryModel") is {whose == "ours"}
""")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=1)
