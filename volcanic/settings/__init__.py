"""The settings, split by concern. All come from the environment through one reader; docs/settings.md lists them."""

from volcanic.settings.a2a import *  # noqa: F403
from volcanic.settings.base import *  # noqa: F403
from volcanic.settings.env import env
from volcanic.settings.identity import *  # noqa: F403
from volcanic.settings.logs import *  # noqa: F403
from volcanic.settings.security import *  # noqa: F403
from volcanic.settings.storage import *  # noqa: F403
from volcanic.settings.trust import *  # noqa: F403
from volcanic.settings.work import *  # noqa: F403

env.seal()
