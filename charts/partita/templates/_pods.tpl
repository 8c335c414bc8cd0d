{{/* What all pods and containers of the chart have in common. */}}

{{/* Variables for settings: engine.batchSize becomes PARTITA_ENGINE_BATCH_SIZE. Takes the settings. Numbers are made
     whole first, since Helm reads them as floats and would write 8.64e+07. */}}
{{- define "partita.settings.env" -}}
{{- range $section, $fields := . }}
{{- range $field, $value := $fields }}
{{- if not (kindIs "invalid" $value) }}
- name: PARTITA_{{ snakecase $section | upper }}_{{ snakecase $field | upper }}
  {{- if kindIs "slice" $value }}
  value: {{ join "," $value | quote }}
  {{- else if or (kindIs "float64" $value) (kindIs "int64" $value) (kindIs "int" $value) }}
  value: {{ $value | int64 | toString | quote }}
  {{- else }}
  value: {{ $value | toString | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fields of a pod besides its containers and volumes. Takes root, pod (values with placement), account and token. */}}
{{- define "partita.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- include "partita.placement" . }}
{{- end }}

{{/* Where a pod runs. Takes pod, and selector (labels as text) where it has topology spread constraints. */}}
{{- define "partita.placement" -}}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .selector .pod.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- $labels := dict "labelSelector" (dict "matchLabels" (fromYaml .selector)) }}
  {{- range .pod.topologySpreadConstraints }}
  {{- toYaml (list (merge (deepCopy .) $labels)) | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A container of the product that ends by itself. Takes root, name, args, secretName, resources and, for a worker's,
     settings. */}}
{{- define "partita.taskContainer" -}}
- name: {{ .name }}
  image: {{ include "partita.image" (dict "root" .root "image" .root.Values.image) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    {{- toYaml .args | nindent 4 }}
  env:
    {{- with include "partita.database.env" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "partita.settings.env" (default .root.Values.settings .settings) | trim }}
    {{- . | nindent 4 }}
    {{- end }}
  securityContext:
    {{- toYaml .root.Values.securityContext | nindent 4 }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    {{- with include "partita.database.volumeMounts" .root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Volumes of the product's own pods. Takes the root. */}}
{{- define "partita.volumes" -}}
- name: tmp
  emptyDir: {}
{{- with include "partita.database.volumes" . | trim }}
{{ . }}
{{- end }}
{{- end }}

{{/* Arguments that bring the schema up to date. Takes the root. */}}
{{- define "partita.migrateArgs" -}}
- migrate
- --wait
- --accept-newer
{{- if .Values.database.createRoles }}
- --roles
{{- end }}
{{- end }}

{{/* Spec of a PodDisruptionBudget besides its selector. Takes its values. */}}
{{- define "partita.disruption" -}}
{{- if or (kindIs "float64" .minAvailable) (kindIs "int64" .minAvailable) (kindIs "int" .minAvailable) .minAvailable }}
minAvailable: {{ .minAvailable }}
{{- else }}
maxUnavailable: {{ .maxUnavailable }}
{{- end }}
{{- end }}

{{/* Spec of the WorkflowEngine as JSON, with whole numbers. Takes its values. */}}
{{- define "partita.engineSpec" -}}
{{- $spec := deepCopy . }}
{{- if hasKey $spec "ttlSecondsAfterFinished" }}
{{- $_ := set $spec "ttlSecondsAfterFinished" (int64 $spec.ttlSecondsAfterFinished) }}
{{- end }}
{{- toJson $spec }}
{{- end }}
