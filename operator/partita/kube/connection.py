"""How to reach the Kubernetes API: from a kubeconfig, or from inside a pod.

The reading of kubeconfigs (certificates inline or in files, tokens, exec plugins) is left to the Kubernetes client; its
result is one record that both kopf and our own HTTP client use. Credentials are read again whenever the API answers
401, since a pod's token and a plugin's token expire.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kopf
import kubernetes.client
import kubernetes.config

from partita.domain.errors import UnavailableError

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> kopf.ConnectionInfo:
    """Credentials of a kubeconfig, of its current context unless one is named.

    Without a kubeconfig those of the pod, else of ``KUBECONFIG`` or ``~/.kube/config``.

    Raises UnavailableError when there are none.
    """
    config = kubernetes.client.Configuration()
    loaders: Any = kubernetes.config  # the client has types for some functions only
    try:
        if kubeconfig is None and context is None and (IN_CLUSTER / "token").exists():
            loaders.load_incluster_config(client_configuration=config)
        else:
            file = str(kubeconfig) if kubeconfig else None
            loaders.load_kube_config(config_file=file, context=context, client_configuration=config)
    except (kubernetes.config.ConfigException, OSError) as error:
        raise UnavailableError(
            f"kubernetes: credentials: {error}; expected a pod's service account or a kubeconfig",
            hint="--kubeconfig PATH",
        ) from error
    return _connection(config)


def current_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that kubectl would take: the context's, or the pod's; empty where neither names one."""
    if kubeconfig is None and context is None and (IN_CLUSTER / "token").exists():
        return own_namespace()
    loaders: Any = kubernetes.config  # the client has types for some functions only
    try:
        contexts, active = loaders.list_kube_config_contexts(str(kubeconfig) if kubeconfig else None)
    except (kubernetes.config.ConfigException, OSError):
        return ""
    chosen = next((each for each in contexts if each["name"] == context), active) if context else active
    return str(chosen["context"].get("namespace") or "")


def own_namespace() -> str:
    """Namespace of the pod this process runs in; empty outside a cluster."""
    file = IN_CLUSTER / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _connection(config: kubernetes.client.Configuration) -> kopf.ConnectionInfo:
    header = config.get_api_key_with_prefix("BearerToken") or config.get_api_key_with_prefix("authorization") or ""
    scheme, _, token = header.rpartition(" ")
    return kopf.ConnectionInfo(
        server=config.host,
        ca_path=config.ssl_ca_cert or None,
        insecure=not config.verify_ssl,
        username=config.username or None,
        password=config.password or None,
        scheme=scheme or None,
        token=token or None,
        certificate_path=config.cert_file or None,
        private_key_path=config.key_file or None,
        proxy_url=config.proxy or None,
    )
