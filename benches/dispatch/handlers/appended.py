"""Appends one message."""

from rasa.mantle.hooks import ModelRequestPayload, modify_model_request

NOTE = {"role": "system", "content": "Answer in one sentence."}


@modify_model_request()
async def handle(request: ModelRequestPayload) -> ModelRequestPayload:
    return request.model_copy(update={"messages": [*request.messages, NOTE]})
