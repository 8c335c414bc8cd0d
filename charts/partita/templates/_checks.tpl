{{/* What the schema cannot say: values that contradict each other. */}}
{{- define "partita.checks" -}}
{{- $database := .Values.database }}
{{- $embedded := .Values.postgresql.embedded.enabled }}
{{- if not (or $embedded $database.url $database.existingSecret.name) }}
{{- fail "partita: database: nothing is set; expected one of database.existingSecret.name (a Secret with the URL), database.url and, to try it out, postgresql.embedded.enabled; try: --set postgresql.embedded.enabled=true" }}
{{- end }}
{{- if and $database.url $database.existingSecret.name }}
{{- fail "partita: database.url: database.existingSecret.name is set too; expected one of them" }}
{{- end }}
{{- if and $embedded (or $database.url $database.existingSecret.name $database.migrations.url $database.migrations.existingSecret.name $database.read.url $database.read.existingSecret.name $database.tls.mode) }}
{{- fail "partita: postgresql.embedded.enabled: the values of another database are set too; expected database.url, existingSecret, migrations, read and tls to be empty" }}
{{- end }}
{{- range $name := list "migrations" "read" }}
{{- $values := index $database $name }}
{{- if and $values.url $values.existingSecret.name }}
{{- fail (printf "partita: database.%s.url: database.%s.existingSecret.name is set too; expected one of them" $name $name) }}
{{- end }}
{{- end }}
{{- if and $database.pooled (not (or $database.migrations.url $database.migrations.existingSecret.name)) }}
{{- fail "partita: database.pooled: there is no direct connection for migrations; expected database.migrations.existingSecret.name or database.migrations.url" }}
{{- end }}
{{- with $database.tls }}
{{- if and .ca.secretName .ca.configMapName }}
{{- fail "partita: database.tls.ca: a Secret and a ConfigMap are named; expected one of them" }}
{{- end }}
{{- if and (hasPrefix "verify-" .mode) (not (or .ca.secretName .ca.configMapName)) }}
{{- fail (printf "partita: database.tls.mode: %s has no authority to verify by; expected database.tls.ca.secretName or database.tls.ca.configMapName" .mode) }}
{{- end }}
{{- end }}
{{- if and .Values.watchNamespaces (not .Values.clusterUid) }}
{{- fail "partita: clusterUid: is empty; expected the cluster's identity, since with watchNamespaces the operator may not read it; try: --set clusterUid=$(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')" }}
{{- end }}
{{- range $name, $worker := .Values.workers }}
{{- if not (or $worker.app $worker.args $.Values.workerDefaults.app $.Values.workerDefaults.args) }}
{{- fail (printf "partita: workers.%s: has no tasks; expected workers.%s.app, such as shop_tasks:app, or args" $name $name) }}
{{- end }}
{{- end }}
{{- end }}
