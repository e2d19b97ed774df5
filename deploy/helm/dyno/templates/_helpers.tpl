{{- define "dyno.labels" -}}
app.kubernetes.io/name: dyno
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/part-of: dyno
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "dyno.account" -}}
{{ .Values.account | default (printf "%s-dyno" .Release.Name) }}
{{- end }}

{{- define "dyno.claim" -}}
{{ .Values.volume.claim | default (printf "%s-runs" .Release.Name) }}
{{- end }}
