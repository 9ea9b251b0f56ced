"""The official SDK's client, as a caller of the product."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict

from tests.product import Product
from tests.waiting import PATIENCE

INTERFACES = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]


@asynccontextmanager
async def sdk_client(
    product: Product, key: str, binding: str, version: str, *, streaming: bool
) -> AsyncIterator[Client]:
    """Yields the official SDK's client for a caller's key. The client uses only the given interface of the card."""
    async with httpx.AsyncClient(headers={"X-API-Key": key}, timeout=PATIENCE) as http:
        card = a2a_pb2.AgentCard()
        ParseDict(
            (await http.get(f"{product.url}/.well-known/agent-card.json")).json(), card, ignore_unknown_fields=True
        )
        wanted = [
            interface
            for interface in card.supported_interfaces
            if (interface.protocol_binding, interface.protocol_version) == (binding, version)
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(wanted)
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
        yield await create_client(card, config)
