"""Argument templates of Quick Apps hooks: checked when a manifest is loaded, rendered when a hook runs.

Templates are JSON-e's. Its package is used as it is; what it would let grow without a bound is bounded in ``rendering``.
"""

from tenterhook.templates.checking import check
from tenterhook.templates.rendering import render
from tenterhook.templates.source import TemplateError, has_template

__all__ = ["TemplateError", "check", "has_template", "render"]
