{{/* One worker: its Deployment and what goes with it. All take root, name and worker (its values over the defaults). */}}

{{/* Seconds that a stopping worker gets: the time that its tasks have to end, and 15 to hand back the rest. */}}
{{- define "partita.worker.grace" -}}
{{- if .worker.terminationGracePeriodSeconds }}
{{- .worker.terminationGracePeriodSeconds | int }}
{{- else }}
{{- $section := default dict .settings.worker }}
{{- add (div (add (default 30000 $section.stopGraceMs | int64) 999) 1000) 15 }}
{{- end }}
{{- end }}

{{- define "partita.worker.args" -}}
{{- if .worker.args }}
{{- toYaml .worker.args }}
{{- else -}}
- worker
- {{ .worker.app | quote }}
{{- range .worker.queues }}
- --queue
- {{ . | quote }}
{{- end }}
{{- range .worker.namespaces }}
- --namespace
- {{ . | quote }}
{{- end }}
{{- with .worker.slots | int }}
- --slots
- {{ . | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "partita.worker.image" -}}
{{- ternary .worker.image .root.Values.image (ne .worker.image.repository "") | toYaml }}
{{- end }}

{{/* Where probes and metrics are served, as ADDRESS:PORT. Takes the values of health. */}}
{{- define "partita.worker.place" -}}
{{- printf (ternary "[%s]:%d" "%s:%d" (contains ":" .bindAddress)) .bindAddress (int .port) }}
{{- end }}

{{/* The probes of a worker that serves them; those that its values give count instead. */}}
{{- define "partita.worker.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{- define "partita.worker.container" -}}
{{- $image := fromYaml (include "partita.worker.image" .) }}
{{- $probes := ternary (fromYaml (include "partita.worker.probes" .)) dict .worker.health.enabled }}
- name: worker
  image: {{ include "partita.image" (dict "root" .root "image" $image) }}
  imagePullPolicy: {{ $image.pullPolicy }}
  {{- with .worker.command }}
  command:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  args:
    {{- include "partita.worker.args" . | trim | nindent 4 }}
  env:
    - name: PARTITA_LOG_LEVEL
      value: {{ .worker.logLevel }}
    {{- if .worker.health.enabled }}
    - name: PARTITA_WORKER_HEALTH_BIND
      value: {{ include "partita.worker.place" .worker.health | quote }}
    {{- end }}
    {{- include "partita.database.env" (dict "root" .root "secretName" (include "partita.database.secretName" .root)) | trim | nindent 4 }}
    {{- with include "partita.settings.env" .settings | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .worker.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .worker.envFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .worker.health.enabled }}
  ports:
    - name: health
      containerPort: {{ .worker.health.port }}
      protocol: TCP
  {{- end }}
  {{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" }}
  {{- with default (index $probes $probe) (index $.worker $probe) }}
  {{ $probe }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  securityContext:
    {{- toYaml .root.Values.securityContext | nindent 4 }}
  resources:
    {{- toYaml .worker.resources | nindent 4 }}
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    {{- with include "partita.database.volumeMounts" .root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .worker.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "partita.worker.deployment" -}}
{{- $parts := dict "root" .root "component" "worker" "worker" .name "podLabels" .worker.podLabels }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "partita.fullname" .root }}-worker-{{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "partita.labels" $parts | nindent 4 }}
spec:
  {{- if not .worker.autoscaling.enabled }}
  replicas: {{ .worker.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      {{- include "partita.selectorLabels" $parts | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "partita.podLabels" $parts | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: worker
        checksum/database: {{ include "partita.database.checksum" .root | quote }}
        {{- with .worker.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "partita.pod" (dict "root" .root "pod" .worker "account" .account "token" .worker.serviceAccount.automountServiceAccountToken "selector" (include "partita.selectorLabels" $parts)) | nindent 6 }}
      terminationGracePeriodSeconds: {{ include "partita.worker.grace" . }}
      {{- if .worker.waitForDatabase }}
      initContainers:
        {{- include "partita.taskContainer" (dict "root" .root "name" "wait-for-database" "args" (list "doctor" "--database-only" "--wait" "300") "secretName" (include "partita.database.secretName" .root) "resources" .root.Values.migrations.resources "settings" .settings) | nindent 8 }}
      {{- end }}
      containers:
        {{- include "partita.worker.container" . | trim | nindent 8 }}
      volumes:
        {{- include "partita.volumes" .root | nindent 8 }}
        {{- with .worker.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- define "partita.worker.autoscaler" -}}
{{- $scaling := .worker.autoscaling }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "partita.fullname" .root }}-worker-{{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "partita.labels" (dict "root" .root "component" "worker" "worker" .name) | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "partita.fullname" .root }}-worker-{{ .name }}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    {{- range $resource, $target := dict "cpu" $scaling.targetCPUUtilizationPercentage "memory" $scaling.targetMemoryUtilizationPercentage }}
    {{- if $target }}
    - type: Resource
      resource:
        name: {{ $resource }}
        target:
          type: Utilization
          averageUtilization: {{ $target }}
    {{- end }}
    {{- end }}
    {{- with $scaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "partita.worker.budget" -}}
{{- $parts := dict "root" .root "component" "worker" "worker" .name }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "partita.fullname" .root }}-worker-{{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "partita.labels" $parts | nindent 4 }}
spec:
  {{- include "partita.disruption" .worker.podDisruptionBudget | trim | nindent 2 }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "partita.selectorLabels" $parts | nindent 6 }}
{{- end }}
