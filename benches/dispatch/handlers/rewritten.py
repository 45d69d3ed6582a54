"""Upper-cases the content of every message."""

from rasa.mantle.hooks import ModelRequestPayload, modify_model_request


@modify_model_request()
async def handle(request: ModelRequestPayload) -> ModelRequestPayload:
    messages = [{**message, "content": message["content"].upper()} for message in request.messages]
    return request.model_copy(update={"messages": messages})
