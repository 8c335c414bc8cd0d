{{/* The database as containers see it: variables, certificates, and the Secrets behind them. */}}

{{- define "partita.postgresql.fullname" -}}
{{- printf "%s-postgresql" (include "partita.fullname" .) }}
{{- end }}

{{/* The Secret that this release makes for URLs that stand in the values. */}}
{{- define "partita.database.secretName" -}}
{{- printf "%s-database" (include "partita.fullname" .) }}
{{- end }}

{{/* One variable from a Secret. Takes root, variable, values (existingSecret and url), key, secretName. */}}
{{- define "partita.database.urlVariable" -}}
{{- if .values.existingSecret.name }}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .values.existingSecret.name }}
      key: {{ .values.existingSecret.key }}
{{- else if .values.url }}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .key }}
{{- end }}
{{- end }}

{{/* All variables about the database. Takes root and secretName. */}}
{{- define "partita.database.env" -}}
{{- $database := .root.Values.database }}
{{- if .root.Values.postgresql.embedded.enabled }}
- name: PARTITA_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "partita.postgresql.fullname" .root }}
      key: url
{{- else }}
{{- include "partita.database.urlVariable" (dict "variable" "PARTITA_DATABASE_URL" "values" $database "key" "url" "secretName" .secretName) }}
{{- include "partita.database.urlVariable" (dict "variable" "PARTITA_MIGRATIONS_URL" "values" $database.migrations "key" "migrations-url" "secretName" .secretName) }}
{{- include "partita.database.urlVariable" (dict "variable" "PARTITA_DATABASE_READ_URL" "values" $database.read "key" "read-url" "secretName" .secretName) }}
{{- end }}
- name: PARTITA_DATABASE_SCHEMA
  value: {{ $database.schema | quote }}
{{- if $database.pooled }}
- name: PARTITA_DATABASE_POOLED
  value: "true"
{{- end }}
{{- if ne $database.planner "auto" }}
- name: PARTITA_DATABASE_PLANNER
  value: {{ $database.planner | quote }}
{{- end }}
{{- with $database.tls.mode }}
- name: PGSSLMODE
  value: {{ . | quote }}
{{- end }}
{{- if or $database.tls.ca.secretName $database.tls.ca.configMapName }}
- name: PGSSLROOTCERT
  value: /etc/partita/database-ca/ca.crt
{{- end }}
{{- if $database.tls.clientCertificate.secretName }}
- name: PGSSLCERT
  value: /etc/partita/database-client/tls.crt
- name: PGSSLKEY
  value: /etc/partita/database-client/tls.key
{{- end }}
{{- end }}

{{/* Mounts of the certificates. Takes the root. */}}
{{- define "partita.database.volumeMounts" -}}
{{- $tls := .Values.database.tls }}
{{- if or $tls.ca.secretName $tls.ca.configMapName }}
- name: database-ca
  mountPath: /etc/partita/database-ca
  readOnly: true
{{- end }}
{{- if $tls.clientCertificate.secretName }}
- name: database-client
  mountPath: /etc/partita/database-client
  readOnly: true
{{- end }}
{{- end }}

{{/* Volumes of the certificates. Takes the root. */}}
{{- define "partita.database.volumes" -}}
{{- $tls := .Values.database.tls }}
{{- if $tls.ca.secretName }}
- name: database-ca
  secret:
    secretName: {{ $tls.ca.secretName }}
    defaultMode: 0444
    items:
      - key: {{ $tls.ca.key }}
        path: ca.crt
{{- else if $tls.ca.configMapName }}
- name: database-ca
  configMap:
    name: {{ $tls.ca.configMapName }}
    defaultMode: 0444
    items:
      - key: {{ $tls.ca.key }}
        path: ca.crt
{{- end }}
{{- if $tls.clientCertificate.secretName }}
- name: database-client
  secret:
    secretName: {{ $tls.clientCertificate.secretName }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Data of the Secret for URLs that stand in the values; empty where none does. Takes the root. */}}
{{- define "partita.database.secretData" -}}
{{- with .Values.database }}
{{- if and .url (not .existingSecret.name) }}
url: {{ .url | b64enc }}
{{- end }}
{{- if and .migrations.url (not .migrations.existingSecret.name) }}
migrations-url: {{ .migrations.url | b64enc }}
{{- end }}
{{- if and .read.url (not .read.existingSecret.name) }}
read-url: {{ .read.url | b64enc }}
{{- end }}
{{- end }}
{{- end }}

{{/* Pods are replaced when this changes. Takes the root. */}}
{{- define "partita.database.checksum" -}}
{{- printf "%s%s" (include "partita.database.secretData" .) .Values.postgresql.embedded.password | sha256sum | trunc 16 }}
{{- end }}
