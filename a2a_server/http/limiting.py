"""Rate limits: requests a minute of each caller over all web processes, and wrong keys a minute of each address.

A caller may use the allowance of a minute at once. Each request counts for 60 seconds (a moving window in Redis, one
round trip). While Redis does not answer, each process counts by itself, so that a caller gets its allowance once for
each process. No request is refused because Redis does not answer.
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

# The longest wait for an answer of Redis.
_TIMEOUT_SECONDS = 0.05
# The time without a further try after Redis did not answer.
_AWAY_SECONDS = 5.0
_WARN_SECONDS = 60.0
_CONNECTIONS = 32
_MOST_BUCKETS = 10_000
_MOST_KNOWN_KEYS = 1_000


class Buckets:
    """Token buckets in this process: each key has an allowance a minute, may use it at once, and regains it evenly.

    Over `most` keys, the key that was used longest ago is forgotten.
    """

    def __init__(self, most: int = _MOST_BUCKETS) -> None:
        self._most = most
        # For each key the time (time.monotonic) at which its bucket is full again.
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, key: str, per_minute: int) -> float:
        """Returns the seconds until the key has a token, 0 when the key has one now."""
        wait = self._full_at.get(key, 0.0) - time.monotonic() - 60 + 60 / per_minute
        return wait if wait > 1e-6 else 0.0  # a smaller value is a rounding error

    def take(self, key: str, per_minute: int) -> float:
        """Takes a token of the key. Returns 0 when a token was taken, otherwise the seconds until the key has one."""
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
    """The rate limit of callers, over all web processes that share a Redis."""

    def __init__(self) -> None:
        self._alone = Buckets()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: BlockingConnectionPool | None = None
        self._shared: MovingWindowRateLimiter | None = None
        self._away_until = 0.0
        self._warn_again_at = 0.0

    async def take(self, caller_id: int, per_minute: int) -> int:
        """Counts a request of a caller. Returns 0, or over the limit the seconds until the caller may try again.

        A `per_minute` of 0 means no limit.
        """
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
        """Closes the connections to Redis."""
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
                # A restart of Redis leaves dead connections in the pool, so a single failed connection is retried once.
                retry=Retry(NoBackoff(), 1),
            )
            # The pool holds the address, so this URL has none. For a unix socket the library's URL scheme differs from
            # redis-py's.
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
    """The rate limit of wrong keys by source address, in this process.

    Over the limit a key is refused without a database lookup. A key that was accepted in this process before is still
    looked up, so that callers who share an address with a stranger are not shut out with the stranger.
    """

    def __init__(self) -> None:
        self._buckets = Buckets()
        self._known: OrderedDict[str, None] = OrderedDict()

    def wait(self, address: str, digest: str) -> int:
        """Returns the seconds until this key may be tried from this address, 0 when it may be tried now."""
        if settings.BAD_KEYS_PER_MINUTE == 0 or digest in self._known:
            return 0
        return math.ceil(self._buckets.wait(address, settings.BAD_KEYS_PER_MINUTE))

    def note_bad(self, address: str, digest: str) -> None:
        """Counts a wrong key of an address."""
        self._known.pop(digest, None)
        if settings.BAD_KEYS_PER_MINUTE:
            self._buckets.take(address, settings.BAD_KEYS_PER_MINUTE)

    def note_good(self, digest: str) -> None:
        """Remembers the digest of an accepted key."""
        self._known[digest] = None
        self._known.move_to_end(digest)
        if len(self._known) > _MOST_KNOWN_KEYS:
            self._known.popitem(last=False)


def peer_of(client: tuple[str, int] | None, headers: Headers) -> str:
    """Returns the address of a request's client; behind PROXY_COUNT proxies, the address in X-Forwarded-For."""
    address = client[0] if client else ""
    if proxies := settings.AXES_IPWARE_PROXY_COUNT:
        forwarded = [part.strip() for value in headers.getlist("x-forwarded-for") for part in value.split(",")]
        if len(forwarded) >= proxies:
            address = forwarded[-proxies]
    return address


def address_of(client: tuple[str, int] | None, headers: Headers) -> str:
    """Returns the source under which a request is counted: the client's IPv4 address, or its IPv6 /64 network."""
    address = peer_of(client, headers)
    if ":" in address and "." not in address:
        address = ":".join(address.split("::")[0].split(":")[:4])
    return address[:64]
