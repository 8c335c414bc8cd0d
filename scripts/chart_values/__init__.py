"""The values of the Helm chart, described once: the schema, values.yaml and the table of the documents are made of it."""
