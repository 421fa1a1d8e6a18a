{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "creel.name" -}}
{{- if contains "creel" .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-creel" .Release.Name | trunc 40 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "creel.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "creel.selector" . }}
{{- end }}

{{- define "creel.selector" -}}
app.kubernetes.io/name: creel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Where the store's URL is kept. */}}
{{- define "creel.storeSecret" -}}
{{- if .Values.store.existingSecret -}}
name: {{ .Values.store.existingSecret }}
key: {{ .Values.store.existingSecretKey }}
{{- else -}}
name: {{ include "creel.name" . }}-store
key: store-url
{{- end }}
{{- end }}

{{/* A file of Hadoop's: a map of keys and values. An integer of YAML arrives as a float. */}}
{{- define "creel.xml" -}}
<?xml version="1.0"?>
<configuration>
{{- range $key, $value := . }}
{{- if kindIs "float64" $value }}{{ $value = int64 $value }}{{ end }}
  <property><name>{{ $key | html }}</name><value>{{ $value | toString | html }}</value></property>
{{- end }}
</configuration>
{{- end }}

{{- define "creel.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/*
The pod of a daemon. top, the chart's root; component; role, the command; args, its further ones; settings, those of -D;
config, the ConfigMap of its directory; place, the values with resources, nodeSelector, tolerations, affinity; ports, a
map of names; web, the one of them that has /livez, /readyz and /metrics; volumes and mounts, further ones.
*/}}
{{- define "creel.pod" -}}
{{- $_ := merge . (dict "labels" dict "checksum" "" "hostNetwork" false "spread" false "ports" dict "web" "" "pause" false
  "mounts" list) }}
metadata:
  labels:
    {{- include "creel.labels" .top | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .labels }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- if .web }}
    creelrm.github.io/metrics: "yes"
    {{- end }}
  {{- with .checksum }}
  annotations:
    checksum/config: {{ . | sha256sum }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .top.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: { type: RuntimeDefault }
  terminationGracePeriodSeconds: 30
  {{- if .hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with .place.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .place.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .place.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if .spread }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "creel.selector" .top | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
  {{- end }}
  containers:
    - name: {{ .role }}
      image: {{ printf "%s:%s" .top.Values.image.repository (.top.Values.image.tag | default .top.Chart.AppVersion) }}
      imagePullPolicy: {{ .top.Values.image.pullPolicy }}
      args:
        - {{ .role }}
        - --conf=/etc/creel
        - -D=creel.store.url=${env.CREEL_STORE}
        {{- if .top.Values.clusterSecret.existingSecret }}
        - -D=creel.cluster.secret-file=/etc/creel-secret/secret
        {{- end }}
        {{- range .settings }}
        - {{ printf "-D=%s" . | quote }}
        {{- end }}
      env:
        - name: CREEL_STORE
          valueFrom: { secretKeyRef: { {{- include "creel.storeSecret" .top | replace "\n" ", " }} } }
        - name: POD_IP
          valueFrom: { fieldRef: { fieldPath: status.podIP } }
      {{- with .ports }}
      ports:
        {{- range $name, $port := . }}
        - { name: {{ $name }}, containerPort: {{ $port }} }
        {{- end }}
      {{- end }}
      {{- if .web }}
      # Any answer: a daemon runs without its store, and /readyz ignores it.
      startupProbe:
        httpGet: { path: /livez, port: {{ .web }} }
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: { path: /livez, port: {{ .web }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: {{ .web }} }
        periodSeconds: 5
        timeoutSeconds: 3
      {{- end }}
      {{- if .pause }}
      # Clients still connect until the pod is removed from all endpoints.
      lifecycle: { preStop: { sleep: { seconds: 5 } } }
      {{- end }}
      resources: {{ toYaml .place.resources | nindent 8 }}
      securityContext: {{ include "creel.securityContext" . | nindent 8 }}
      volumeMounts:
        - { name: config, mountPath: /etc/creel, readOnly: true }
        {{- if .top.Values.clusterSecret.existingSecret }}
        - { name: secret, mountPath: /etc/creel-secret, readOnly: true }
        {{- end }}
        {{- with .mounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: config
      configMap: { name: {{ .config }} }
    {{- with .top.Values.clusterSecret }}
    {{- if .existingSecret }}
    - name: secret
      secret:
        secretName: {{ .existingSecret }}
        defaultMode: 0440
        items: [{ key: {{ .key }}, path: secret }]
    {{- end }}
    {{- end }}
{{- end }}
