"""The operator: the only part that knows kopf and the Kubernetes API.

Spec flows in through handlers that turn an object into a command for the engine; status flows out through one
projector. Nothing here decides what a run does, and no finalizer is ever set.
"""
