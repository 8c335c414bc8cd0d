"""The commands, one family a module; each module offers ``register(app)``."""
