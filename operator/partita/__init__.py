"""Durable workflows for Kubernetes with PostgreSQL as the only state store."""
