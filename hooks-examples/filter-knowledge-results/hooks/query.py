"""Puts search queries into the words of the articles, and counts the searches of each channel."""

from __future__ import annotations

import re
from collections import Counter

import structlog
from rasa.mantle.hooks import KnowledgeQueryPayload, modify_knowledge_query, on_knowledge_query

logger = structlog.get_logger()

#: What people write, and what the articles call it.
SYNONYMS = {
    "2fa": "two-factor authentication",
    "pw": "password",
    "wifi": "wireless network",
    "wi-fi": "wireless network",
    "laptop": "notebook computer",
}

_WORD = re.compile(r"[\w-]+")

#: Searches by channel: a handful of keys, however many conversations there are.
_searches: Counter[str] = Counter()


@on_knowledge_query()
async def count_search(payload: KnowledgeQueryPayload) -> None:
    """Counts the search and logs the model's own query, which shows what `SYNONYMS` still lacks."""
    channel = payload.channel.name or "unknown"
    _searches[channel] += 1
    logger.info("knowledge.searched", query=payload.query, channel=channel, searches=_searches[channel])


@modify_knowledge_query()
async def expand_query(payload: KnowledgeQueryPayload) -> KnowledgeQueryPayload:
    """Lower case, single spaces, no question mark, and the articles' words beside the user's."""
    query = " ".join(payload.query.lower().split()).rstrip("?!. ")
    added = dict.fromkeys(SYNONYMS[word] for word in _WORD.findall(query) if word in SYNONYMS)
    query = " ".join([query, *(words for words in added if words not in query)])
    return payload if query == payload.query else payload.model_copy(update={"query": query})
