"""Requests a minute: of each caller over all web processes, and of addresses that try wrong keys.

A caller may use its whole minute's allowance at once, and then gets each request's place back 60 seconds after it (a
moving window in Redis, one round trip). While Redis is away nobody is refused for that: each process counts by itself,
so that a caller gets its allowance once for each process.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict

from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from starlette.datastructures import Headers

logger = logging.getLogger(__name__)

# An answer that takes longer is not waited for.
_TIMEOUT_SECONDS = 0.05
# Redis that did not answer is left alone for so long.
_AWAY_SECONDS = 5.0
_WARN_SECONDS = 60.0
_CONNECTIONS = 32
_MOST_BUCKETS = 10_000
_MOST_KNOWN_KEYS = 1_000


class Buckets:
    """Token buckets in this process: each key may do so much a minute, all at once if it likes, and regains it evenly.

    Of more than `most` keys the one that was quiet longest is forgotten.
    """

    def __init__(self, most: int = _MOST_BUCKETS) -> None:
        self._most = most
        # For each key when its bucket will be full again.
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, key: str, per_minute: int) -> float:
        """Returns in how many seconds the key may do one more thing, 0 for now."""
        wait = self._full_at.get(key, 0.0) - time.monotonic() - 60 + 60 / per_minute
        return wait if wait > 1e-6 else 0.0  # less is rounding

    def take(self, key: str, per_minute: int) -> float:
        """Counts one thing that the key does, if it may. Returns in how many seconds it may, 0 when it was counted."""
        wait = self.wait(key, per_minute)
        if not wait:
            self._full_at[key] = max(self._full_at.get(key, 0.0), time.monotonic()) + 60 / per_minute
            self._full_at.move_to_end(key)
            if len(self._full_at) > self._most:
                self._full_at.popitem(last=False)
        return wait


class _Storage(RedisStorage):
    # Else it imports the clients of other databases too, in the event loop and with the first request.
    DEPENDENCIES = {"redis": RedisStorage.DEPENDENCIES["redis"]}


class CallerLimiter:
    """Counts the requests of callers, over all web processes that share a Redis."""

    def __init__(self) -> None:
        self._alone = Buckets()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: BlockingConnectionPool | None = None
        self._shared: MovingWindowRateLimiter | None = None
        self._away_until = 0.0
        self._warn_again_at = 0.0

    async def take(self, caller_id: int, per_minute: int) -> int:
        """Counts a request. Returns 0, or if there were too many after how many seconds to try again."""
        if per_minute == 0:
            return 0
        wait = 0.0
        if time.monotonic() >= self._away_until:
            shared = self._connected()
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    wait = await _take_shared(shared, RateLimitItemPerMinute(per_minute), str(caller_id))
                return math.ceil(wait)
            except (RedisError, OSError, TimeoutError) as error:
                self._note_away(error)
        return math.ceil(self._alone.take(str(caller_id), per_minute))

    async def close(self) -> None:
        """Closes the connections."""
        if self._pool is not None:
            await self._pool.disconnect()
        self._loop = self._pool = self._shared = None

    def _connected(self) -> MovingWindowRateLimiter:
        loop = asyncio.get_running_loop()
        if self._shared is None or self._loop is not loop:
            self._loop = loop
            self._pool = BlockingConnectionPool.from_url(
                settings.REDIS_URL,
                max_connections=_CONNECTIONS,
                timeout=_TIMEOUT_SECONDS,
                socket_timeout=_TIMEOUT_SECONDS,
                socket_connect_timeout=_TIMEOUT_SECONDS,
                # A restart of Redis leaves dead connections in the pool: one of them is no failure.
                retry=Retry(NoBackoff(), 1),
            )
            # The pool knows the address, a unix socket's too, of which the library has a name of its own.
            storage = _Storage(
                "async+redis://",
                implementation="redispy",
                key_prefix=f"{settings.REDIS_PREFIX}.rate",
                connection_pool=self._pool,  # type: ignore[arg-type]
            )
            self._shared = MovingWindowRateLimiter(storage)
        return self._shared

    def _note_away(self, error: Exception) -> None:
        now = time.monotonic()
        self._away_until = now + _AWAY_SECONDS
        if now >= self._warn_again_at:
            self._warn_again_at = now + _WARN_SECONDS
            logger.warning(
                "requests are counted in each process by itself, Redis did not answer: %s",
                error or type(error).__name__,
            )


async def _take_shared(shared: MovingWindowRateLimiter, item: RateLimitItemPerMinute, key: str) -> float:
    if await shared.hit(item, key):
        return 0.0
    window = await shared.get_window_stats(item, key)
    return max(1.0, window.reset_time - time.time())


class StrangerLimiter:
    """Counts wrong keys by the address they come from, in this process.

    Over the limit a key is refused without a look at the database. One that was good in this process a while ago is
    looked up all the same: whoever shares an address with a stranger is not shut out with it.
    """

    def __init__(self) -> None:
        self._buckets = Buckets()
        self._known: OrderedDict[str, None] = OrderedDict()

    def wait(self, address: str, digest: str) -> int:
        """Returns after how many seconds this key may be tried from this address, 0 for now."""
        if settings.BAD_KEYS_PER_MINUTE == 0 or digest in self._known:
            return 0
        return math.ceil(self._buckets.wait(address, settings.BAD_KEYS_PER_MINUTE))

    def note_bad(self, address: str, digest: str) -> None:
        """Counts a wrong key."""
        self._known.pop(digest, None)
        if settings.BAD_KEYS_PER_MINUTE:
            self._buckets.take(address, settings.BAD_KEYS_PER_MINUTE)

    def note_good(self, digest: str) -> None:
        """Remembers a good key's digest."""
        self._known[digest] = None
        self._known.move_to_end(digest)
        if len(self._known) > _MOST_KNOWN_KEYS:
            self._known.popitem(last=False)


def peer_of(client: tuple[str, int] | None, headers: Headers) -> str:
    """Returns the address that a request comes from, as far as PROXY_COUNT proxies tell."""
    address = client[0] if client else ""
    if proxies := settings.AXES_IPWARE_PROXY_COUNT:
        forwarded = [part.strip() for value in headers.getlist("x-forwarded-for") for part in value.split(",")]
        if len(forwarded) >= proxies:
            address = forwarded[-proxies]
    return address


def address_of(client: tuple[str, int] | None, headers: Headers) -> str:
    """Returns the same as a source to count by: of IPv6 the /64."""
    address = peer_of(client, headers)
    if ":" in address and "." not in address:
        address = ":".join(address.split("::")[0].split(":")[:4])
    return address[:64]
