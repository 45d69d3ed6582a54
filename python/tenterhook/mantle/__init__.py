"""The interface that hook modules are written against, in pure Python.

Nothing here needs the engine: decorators leave marks on a function and return it, payloads are pydantic models. The
names `rasa.mantle.*` lead here once :func:`tenterhook.install` has been called or an engine has been started.
"""
