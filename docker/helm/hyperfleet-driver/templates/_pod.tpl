{{/* The template of the pods: of the StatefulSet with SQLite, of the Deployment with PostgreSQL. */}}
{{- define "hfd.pod" -}}
{{- $mounts := include "hfd.mounts" . | fromJsonArray -}}
{{- $postgres := eq .Values.store "postgres" -}}
metadata:
  labels:
    {{- include "hfd.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Other settings start the pod again.
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    kubectl.kubernetes.io/default-container: driver
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "hfd.serviceAccount" . }}
  automountServiceAccountToken: {{ include "hfd.inCluster" . | eq "true" }}
  # A Service named hfd would set HFD_PORT and others, which are no settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext: {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if .Values.keys.secret }}
  initContainers:
    # The key ring must be a file that only its owner may read. A mounted Secret is not.
    - name: keys
      image: {{ include "hfd.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [install, -m, "0600", /secret/keys, /run/hyperfleet-driver/keys/keys]
      securityContext: {{- toYaml .Values.securityContext | nindent 8 }}
      resources:
        requests: {cpu: 10m, memory: 16Mi}
        limits: {memory: 64Mi}
      volumeMounts:
        - {name: keys-secret, mountPath: /secret, readOnly: true}
        - {name: keys, mountPath: /run/hyperfleet-driver/keys}
  {{- end }}
  containers:
    - name: driver
      image: {{ include "hfd.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command:
        - hyperfleet-driver
        - serve
        {{- if .Values.hypershift.enabled }}
        {{- range $name, $_ := .Values.hypershift.managementSecrets }}
        - --hypershift-management-{{ $name }}-kubeconfig=/etc/hyperfleet-driver/management-{{ $name }}/kubeconfig
        {{- end }}
        {{- end }}
        {{- range $name, $hook := .Values.events.webhooks }}
        - {{ printf "--events-webhooks-%s-url=%s" $name $hook.url | quote }}
        - --events-webhooks-{{ $name }}-secret-file=/etc/hyperfleet-driver/webhook-{{ $name }}/secret
        {{- with $hook.types }}
        - --events-webhooks-{{ $name }}-types={{ . }}
        {{- end }}
        {{- if $hook.caConfigMap }}
        - --events-webhooks-{{ $name }}-ca-file=/etc/hyperfleet-driver/webhook-{{ $name }}-ca/ca.crt
        {{- end }}
        {{- end }}
        {{- with .Values.events.rabbitmq }}
        {{- if .url }}
        - {{ printf "--events-amqp-url=%s" .url | quote }}
        {{- if .passwordSecret }}
        - --events-amqp-password-file=/etc/hyperfleet-driver/rabbitmq/password
        {{- end }}
        {{- if .caConfigMap }}
        - --events-amqp-ca-file=/etc/hyperfleet-driver/rabbitmq-ca/ca.crt
        {{- end }}
        {{- end }}
        {{- end }}
      env:
        {{- include "hfd.env" . | trim | nindent 8 }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: http, containerPort: 8000, protocol: TCP}
        - {name: ops, containerPort: 8080, protocol: TCP}
      {{- if $postgres }}
      # The Service stops sending requests here before SIGTERM closes the listener.
      lifecycle:
        preStop:
          exec: {command: [sleep, {{ .Values.postgres.stopDelaySeconds | quote }}]}
      {{- end }}
      startupProbe:
        httpGet: {path: /livez, port: ops, scheme: {{ include "hfd.scheme" . }}}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: {{ max 1 (div (int .Values.startupSeconds) 5) }}
      livenessProbe:
        httpGet: {path: /livez, port: ops, scheme: {{ include "hfd.scheme" . }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: ops, scheme: {{ include "hfd.scheme" . }}}
        periodSeconds: 5
        timeoutSeconds: 3
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext: {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        {{- if not $postgres }}
        - {name: data, mountPath: /data}
        {{- end }}
        {{- if .Values.keys.secret }}
        # Read only: a key that is added here would be gone at the next start.
        - {name: keys, mountPath: /run/hyperfleet-driver/keys, readOnly: true}
        {{- end }}
        {{- range $mounts }}
        - {name: {{ .name }}, mountPath: /etc/hyperfleet-driver/{{ .name }}, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- range $mounts }}
    - name: {{ .name }}
      {{- if eq .kind "secret" }}
      secret: {secretName: {{ .from }}, defaultMode: 0440}
      {{- else }}
      configMap: {name: {{ .from }}}
      {{- end }}
    {{- end }}
    {{- if .Values.keys.secret }}
    - name: keys-secret
      secret: {secretName: {{ .Values.keys.secret }}, defaultMode: 0440}
    - name: keys
      emptyDir: {medium: Memory, sizeLimit: 1Mi}
    {{- end }}
    {{- if $postgres }}
    {{- else if not .Values.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim }}}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity: {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if $postgres }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {{- include "hfd.selector" . | nindent 16 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if $postgres }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "hfd.selector" . | nindent 10 }}
  {{- end }}
{{- end -}}
