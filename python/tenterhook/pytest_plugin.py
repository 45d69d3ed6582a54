"""The pytest plug-in: a test suite of hooks runs without an engine's server.

It gives the names ``rasa.mantle.*`` before tests are collected. Where a real ``rasa`` is installed it leaves them alone,
unless the suite asks for ours with ``tenterhook_names = true`` in its ini file or ``--tenterhook-names``.

Fixtures: ``tenterhook_engine`` loads agents and shuts them down; one fixture for each payload, such as
``model_request_payload``, makes payloads with defaults for what the test does not care about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenterhook import names

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from tenterhook.engine import Engine
    from tenterhook.mantle import payloads

__all__ = ["pytest_addoption", "pytest_load_initial_conftests", "tenterhook_engine"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option and the ini setting."""
    text = "give `rasa.mantle.*` by tenterhook even where a real `rasa` is installed"
    parser.addini("tenterhook_names", text, type="bool", default=False)
    parser.getgroup("tenterhook").addoption("--tenterhook-names", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Gives the names, before any ``conftest.py`` may import them."""
    asked = early_config.getini("tenterhook_names") or early_config.known_args_namespace.tenterhook_names
    if asked or not names.real_rasa_is_installed():
        names.install()


@pytest.fixture
def tenterhook_engine() -> Iterator[Callable[..., Engine]]:
    """``tenterhook_engine(folder, **settings)`` loads an agent's hooks; what was loaded is closed after the test."""
    from tenterhook.engine import Engine

    loaded: list[Engine] = []

    def load(folder: str | os.PathLike[str], **settings: Any) -> Engine:
        engine = Engine.load(folder, **settings)
        loaded.append(engine)
        return engine

    yield load
    for engine in loaded:
        engine.close()


def _payload_fixture(name: str, **defaults: Any) -> Any:
    def make_payload() -> Callable[..., payloads.HookPayload]:
        from tenterhook.mantle import payloads

        model: type[payloads.HookPayload] = getattr(payloads, name)

        def make(**fields: Any) -> payloads.HookPayload:
            return model(**{"sender_id": "test", **defaults, **fields})

        return make

    make_payload.__doc__ = f"``(**fields)`` makes a ``{name}``; its conversation is ``test`` unless given."
    return make_payload


turn_started_payload = pytest.fixture(_payload_fixture("TurnStartedPayload"))
turn_finished_payload = pytest.fixture(_payload_fixture("TurnFinishedPayload", status="completed"))
incoming_message_payload = pytest.fixture(_payload_fixture("IncomingMessagePayload", text=""))
model_request_payload = pytest.fixture(_payload_fixture("ModelRequestPayload", messages=[]))
model_response_payload = pytest.fixture(_payload_fixture("ModelResponsePayload"))
tool_call_payload = pytest.fixture(_payload_fixture("ToolCallPayload", tool_name="tool", arguments={}))
tool_result_payload = pytest.fixture(_payload_fixture("ToolResultPayload", tool_name="tool", arguments={}, value=None))
knowledge_query_payload = pytest.fixture(_payload_fixture("KnowledgeQueryPayload", query=""))
knowledge_results_payload = pytest.fixture(_payload_fixture("KnowledgeResultsPayload", query="", passages=[]))
outgoing_text_payload = pytest.fixture(_payload_fixture("OutgoingTextPayload", text=""))
