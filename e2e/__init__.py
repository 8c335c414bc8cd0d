"""The product on a real Kubernetes API: the demo, its tests, and the clusters they run on."""
