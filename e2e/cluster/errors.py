"""What can go wrong around a cluster, in the words a person reads."""


class ClusterError(Exception):
    """A cluster could not be started, reached or stopped; the message carries the end of the log concerned."""


class ProviderUnavailable(ClusterError):
    """Nothing on this machine can provide a cluster; the message names what each provider misses."""


class BuildError(ClusterError):
    """The control plane's programs could not be built; the message carries the end of the compiler's output."""
