"""A server of the Model Context Protocol with one tool, on the standard library alone: a message is a line of JSON.

Servers of your own are better made with the package ``mcp``; this one shows all that has to be said.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FLIGHTS = {"502": "on time", "618": "30 minutes late"}

FLIGHT_STATUS = {
    "name": "flight_status",
    "description": "Whether a flight is on time",
    "inputSchema": {
        "type": "object",
        "properties": {"flight": {"type": "string", "description": "the number, such as 502"}},
        "required": ["flight"],
    },
}


def answer(method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": given["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "flights", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [FLIGHT_STATUS]}
    if method == "tools/call":
        flight = given["arguments"].get("flight", "")
        status = FLIGHTS.get(flight)
        text = f"Flight {flight} is {status}." if status else f"There is no flight {flight} today."
        return {"content": [{"type": "text", "text": text}], "isError": status is None}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    # What has no id wants no answer.
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
