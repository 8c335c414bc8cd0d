"""The values of the Helm chart, described once: schema, values.yaml and the table of the README are made of it."""
