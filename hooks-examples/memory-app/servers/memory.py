"""A memory behind the Model Context Protocol, on the standard library alone: a message is a line of JSON.

Servers of your own are better made with the package ``mcp``; this one shows all that has to be said.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

MEMORIES: list[str] = []

TEXT = {"type": "string"}


def tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(arguments, TEXT), "required": list(arguments)}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("search_memories", "What is remembered that fits a text", "query"),
    tool("save_memory", "Remembers what was said", "user", "assistant"),
]


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def call(name: str, given: dict[str, str]) -> str:
    if name == "save_memory":
        MEMORIES.append(f"The user said: {given['user']}")
        return "saved"
    return "\n".join(memory for memory in MEMORIES if words(memory) & words(given["query"])) or "nothing yet"


def answer(method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "memory", "version": "1"}
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(given["name"], given["arguments"])}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    # What has no id wants no answer.
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
