"""`make demo`: the main job as a person does it, on a real Kubernetes API and a real PostgreSQL."""
