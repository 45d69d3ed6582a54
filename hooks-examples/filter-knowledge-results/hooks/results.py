"""Leaves the model only passages that are relevant, that the channel may see, and that say something new."""

from __future__ import annotations

from typing import Any

import structlog
from rasa.mantle.hooks import KnowledgeResultsPayload, modify_knowledge_results

logger = structlog.get_logger()

#: Less relevant passages mislead more often than they help.
MIN_SCORE = 0.35

#: More passages than this cost tokens and no longer change the answer.
MAX_PASSAGES = 3

#: The scopes that a channel may see; a channel that is not listed is taken for a public one.
VISIBLE_SCOPES = {"staff-desk": {"public", "staff"}}
PUBLIC_SCOPES = {"public"}


@modify_knowledge_results()
async def filter_passages(payload: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    """Drops passages, keeps the order of the rest and never rewrites one: the answer may quote it."""
    scopes = VISIBLE_SCOPES.get(payload.channel.name or "", PUBLIC_SCOPES)
    passages: list[dict[str, Any]] = []
    seen: set[str] = set()
    for passage in payload.passages:
        words = " ".join(str(passage.get("text") or "").lower().split())
        if not words or words in seen or passage.get("scope") not in scopes or not _relevant(passage):
            continue
        seen.add(words)
        passages.append(passage)
    passages = passages[:MAX_PASSAGES]
    if len(passages) == len(payload.passages):
        return payload
    logger.info("knowledge.filtered", query=payload.query, found=len(payload.passages), kept=len(passages))
    return payload.model_copy(update={"passages": passages})


def _relevant(passage: dict[str, Any]) -> bool:
    """Whether the score is high enough. Not every index gives one; then the order has to do."""
    score = passage.get("score")
    return not isinstance(score, int | float) or score >= MIN_SCORE
