"""Gives the payload back as it is."""

from rasa.mantle.hooks import ModelRequestPayload, modify_model_request


@modify_model_request()
async def handle(request: ModelRequestPayload) -> ModelRequestPayload:
    return request
