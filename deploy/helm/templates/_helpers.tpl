{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of everything but selectors, which may not change. */}}
{{- define "all-labels" -}}
{{ include "labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* How many coordinators. */}}
{{- define "replicas" -}}
{{- $postgres := eq .Values.store.kind "postgres" -}}
{{- $replicas := int (.Values.replicas | default (ternary 2 1 $postgres)) -}}
{{- if and (not $postgres) (gt $replicas 1) -}}
{{- fail "found several replicas with store.kind sqlite, wanted postgres: a file has one coordinator" -}}
{{- end -}}
{{- $replicas -}}
{{- end }}

{{/* Whether a port on loopback answers a path with 200: the image has no other program that could ask. */}}
{{- define "asks" -}}
exec:
  command:
    - bash
    - -c
    - >-
      exec 3<>/dev/tcp/127.0.0.1/9443 && printf 'GET {{ . }} HTTP/1.0\r\n\r\n' >&3
      && read -r _ code _ <&3 && [ "$code" = 200 ]
{{- end }}
