"""The sandbox for Python code that a model has written: PyPI ``pydantic-monty``, in worker processes.

``serving`` is the thread that all sessions live on, ``session`` one of them, ``driving`` a run from one pause of the code to the next.
``sites`` reads which calls want a coroutine and which a value, ``values`` takes values over the border, ``failures`` says how code ended.
"""
