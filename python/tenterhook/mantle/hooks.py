"""``rasa.mantle.hooks``: all that a hook module imports."""

from tenterhook.mantle import decorators, payloads, signals
from tenterhook.mantle.decorators import *  # noqa: F403
from tenterhook.mantle.payloads import *  # noqa: F403
from tenterhook.mantle.signals import *  # noqa: F403

__all__ = [*decorators.__all__, *payloads.__all__, *signals.__all__]  # noqa: PLE0604
