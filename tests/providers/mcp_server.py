"""A server that speaks MCP, over standard input and output or over HTTP, with tools that do what servers do to their clients."""

import argparse
import base64
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from starlette.types import ASGIApp, Receive, Scope, Send

PAGE = 4


class Server(MCPServer):
    """Tells its tools in pages."""

    async def _handle_list_tools(self, ctx: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        tools = await self.list_tools()
        start = int(params.cursor) if params and params.cursor else 0
        following = str(start + PAGE) if start + PAGE < len(tools) else None
        record(f"list {start}")
        return ListToolsResult(tools=tools[start : start + PAGE], next_cursor=following)


server = Server("test", log_level="WARNING")
options = argparse.Namespace()


def record(line: str) -> None:
    """Tells the test what has happened."""
    if options.record:
        with Path(options.record).open("a") as file:
            file.write(line + "\n")


def echo(text: str) -> str:
    """Says the same."""
    record(f"echo {text}")
    return text


@server.tool(structured_output=False)
def parts() -> list[Any]:
    """Gives all kinds of content."""
    data = base64.b64encode(b"hello").decode()
    return [
        TextContent(type="text", text="one"),
        ImageContent(type="image", data=data, mime_type="image/png"),
        AudioContent(type="audio", data=data, mime_type="audio/wav"),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a.txt", text="two")),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///a.bin", blob=data)),
        ResourceLink(type="resource_link", uri="https://a.test/b", name="b"),
    ]


@server.tool(structured_output=False)
def document() -> CallToolResult:
    """Gives a document and no text."""
    return CallToolResult(content=[], structured_content={"balance": 12.5, "currency": "EUR"})


@server.tool(structured_output=False)
def fails() -> str:
    """Fails."""
    message = "there is no such account"
    raise ToolError(message)


@server.tool(structured_output=False)
async def slow() -> str:
    """Takes its time."""
    record("slow began")
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        record("slow was cancelled")
        raise
    return "done"


@server.tool(structured_output=False)
def dies() -> str:
    """Ends the server."""
    record("dies began")
    os._exit(3)


@server.tool(structured_output=False)
async def changes(context: Context) -> str:
    """Loses `parts`, and describes `echo` otherwise."""
    server.remove_tool("parts")
    server.remove_tool("echo")
    server.add_tool(lambda words: words, name="echo", description="Says it again.", structured_output=False)
    await context.session.send_tool_list_changed()
    return "changed"


@server.tool(structured_output=False)
def huge(size: int) -> str:
    """Says a lot."""
    return "x" * size


@server.tool(structured_output=False)
def environment() -> str:
    """Names the variables of its environment."""
    return " ".join(sorted(os.environ))


@server.tool(structured_output=False)
def begets() -> str:
    """Starts a process of its own, and tells both numbers."""
    child = subprocess.Popen(["sleep", "60"])
    return f"{os.getpid()} {child.pid}"


class Guarded:
    """Lets in who has the token or the key, and everybody where there is none."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or has the server do so."""
        if scope["type"] == "http":
            if scope["method"] == "DELETE":
                record("DELETE")
            headers = dict(scope["headers"])
            given = headers.get(b"authorization")
            has_key = not options.key or headers.get(b"api-key") == options.key.encode()
            if (options.token and given != f"Bearer {options.token}".encode()) or not has_key:
                status = 403 if given == b"Bearer weak" else 401
                headers = [(b"content-type", b"text/plain")]
                if given is None:
                    headers.append((b"www-authenticate", b"Bearer"))
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": b"no"})
                return
        await self.app(scope, receive, send)


def serve() -> None:
    """Serves over HTTP; the first line on standard output is the port."""
    if options.sse:
        app = Guarded(server.sse_app(host=options.host))
    else:
        path = options.path or "/mcp"
        app = Guarded(
            server.streamable_http_app(json_response=options.json, host=options.host, streamable_http_path=path)
        )
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.http))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    # The test holds the other end: a server never outlives it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def main() -> None:
    """Serves as it is told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--json", action="store_true", help="one document an answer, no events")
    parser.add_argument("--sse", action="store_true", help="the transport of before 2025")
    parser.add_argument("--path", help="where the endpoint is")
    parser.add_argument("--token")
    parser.add_argument("--key", help="what the header `Api-Key` is to have")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--only", metavar="TOOL", help="that one tool, and `echo`")
    parser.add_argument("--says", help="what is said of `echo`")
    parser.parse_args(namespace=options)
    server.add_tool(echo, description=options.says, structured_output=False)
    if options.only:
        for name in [tool.name for tool in server._tool_manager.list_tools()]:
            if name not in (options.only, "echo"):
                server.remove_tool(name)
    print("ready", file=sys.stderr, flush=True)
    if options.http is None:
        server.run()
    else:
        serve()


if __name__ == "__main__":
    main()
