{{/* Rules of the operator: exactly what its code calls, no wildcards. */}}

{{/* On the objects of a namespace that it handles: definitions and runs, and Events about them. */}}
{{- define "partita.rules.handled" -}}
- apiGroups: [partita.dev]
  resources: [workflowdefinitions]
  verbs: [get, list, watch, patch]
- apiGroups: [partita.dev]
  resources: [workflowdefinitions/status, workflowruns/status]
  verbs: [patch]
- apiGroups: [partita.dev]
  resources: [workflowruns]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [partita.dev]
  resources: [workflowengines]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
{{- end }}

{{/* In its own namespace: leadership, its WorkflowEngine, and the label of the pod that leads. A create has no name to
     restrict it to. */}}
{{- define "partita.rules.own" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [partita-operator]
  verbs: [get, update]
- apiGroups: [partita.dev]
  resources: [workflowengines]
  verbs: [create]
- apiGroups: [partita.dev]
  resources: [workflowengines]
  resourceNames: [partita]
  verbs: [get, patch]
- apiGroups: [partita.dev]
  resources: [workflowengines/status]
  resourceNames: [partita]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}

{{/* In the whole cluster, where all namespaces are watched: CRDs are watched so that one that is made anew is noticed.
     Takes the root. */}}
{{- define "partita.rules.cluster" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
{{- if not .Values.clusterUid }}
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end }}

{{/* What people may do. Takes the word view, edit or admin. */}}
{{- define "partita.rules.people" -}}
{{- if eq . "view" }}
- apiGroups: [partita.dev]
  resources: [workflowdefinitions, workflowruns, workflowengines]
  verbs: [get, list, watch]
{{- else if eq . "edit" }}
- apiGroups: [partita.dev]
  resources: [workflowdefinitions, workflowruns]
  verbs: [create, delete, deletecollection, patch, update]
{{- else }}
- apiGroups: [partita.dev]
  resources: [workflowengines]
  verbs: [delete, patch, update]
{{- end }}
{{- end }}

{{/* A Role or ClusterRole and its binding to the operator. Takes root, name, namespace (empty: the cluster) and rules. */}}
{{- define "partita.grant" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "partita.labels" (dict "root" .root "component" "operator") | nindent 4 }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "partita.labels" (dict "root" .root "component" "operator") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "partita.serviceAccountName" (dict "root" .root "account" .root.Values.operator.serviceAccount "suffix" "operator") }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
