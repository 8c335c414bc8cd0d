"""The ``partita`` command and the ``kubectl partita`` plugin: a thin shell around the layers below.

Commands parse words, call one function of a layer below and render its result. What a command prints for people also
comes as JSON with ``-o json``; errors are one line on standard error with a hint, and an exit code from ``exits``.
"""
