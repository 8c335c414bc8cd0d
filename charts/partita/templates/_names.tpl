{{/* Names and labels. Every object's name begins with partita.fullname, which leaves 31 characters for the rest. */}}

{{- define "partita.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 32 | trimSuffix "-" }}
{{- end }}

{{- define "partita.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 32 | trimSuffix "-" }}
{{- else if contains (include "partita.name" .) .Release.Name }}
{{- .Release.Name | trunc 32 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "partita.name" .) | trunc 32 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that a selector needs; they never change. Takes root, component and, for workers, worker. */}}
{{- define "partita.selectorLabels" -}}
app.kubernetes.io/name: {{ include "partita.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .worker }}
partita.dev/worker: {{ . }}
{{- end }}
{{- end }}

{{- define "partita.labels" -}}
{{ include "partita.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: partita
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of a pod: those of its object without what changes with every release, and the person's. Takes podLabels. */}}
{{- define "partita.podLabels" -}}
{{ include "partita.selectorLabels" . }}
app.kubernetes.io/part-of: partita
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with .podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The name of a service account. Takes root, account (its values) and suffix. */}}
{{- define "partita.serviceAccountName" -}}
{{- if .account.create }}
{{- default (printf "%s-%s" (include "partita.fullname" .root) .suffix) .account.name }}
{{- else }}
{{- default "default" .account.name }}
{{- end }}
{{- end }}

{{/* A service account. Takes root, component, account, suffix, token and, for workers, worker. */}}
{{- define "partita.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "partita.serviceAccountName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "partita.labels" . | nindent 4 }}
  {{- with .account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: {{ .token }}
{{- end }}

{{/* The reference of an image. Takes root and image. */}}
{{- define "partita.image" -}}
{{- $image := .image }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}
