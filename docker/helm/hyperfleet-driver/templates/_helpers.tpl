{{- define "hfd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 characters: the StatefulSet adds "-0" and a hash of 10 to the names of its pods' labels. */}}
{{- define "hfd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "hfd.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "hfd.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "hfd.selector" -}}
app.kubernetes.io/name: {{ include "hfd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hfd.labels" -}}
{{ include "hfd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "hfd.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "hfd.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "hfd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* "true" if the management cluster is this one. */}}
{{- define "hfd.inCluster" -}}
{{- if and .Values.hypershift.enabled (not .Values.hypershift.kubeconfigSecret) -}}true{{- end -}}
{{- end -}}

{{- define "hfd.scheme" -}}
{{- if .Values.tls.secret -}}HTTPS{{- else -}}HTTP{{- end -}}
{{- end -}}

{{/* Refuses, in words, values that cannot work together. */}}
{{- define "hfd.check" -}}
{{- if and (eq .Values.store "sqlite") (gt (int .Values.replicaCount) 1) -}}
{{- fail (printf "replicaCount is %d: state is one SQLite database on one volume, which one process uses. Use 1 replica, 0 to stop it, or store: postgres for several." (int .Values.replicaCount)) -}}
{{- end -}}
{{- if eq .Values.store "postgres" -}}
{{- include "hfd.checkPostgres" . -}}
{{- else if or .Values.postgres.url .Values.postgres.passwordSecret .Values.postgres.caConfigMap -}}
{{- fail "postgres.url, postgres.passwordSecret and postgres.caConfigMap need store: postgres" -}}
{{- end -}}
{{- if not (or .Values.auth.tokensSecret .Values.auth.operatorKeysSecret .Values.auth.issuersSecret .Values.auth.insecureNoAuth) -}}
{{- fail "auth: nothing to log in with. Set auth.tokensSecret, auth.operatorKeysSecret or auth.issuersSecret, or auth.insecureNoAuth=true for a test. Make a token: hyperfleet-driver token create --name orchestrator --scope driver --auth-tokens-file tokens; then kubectl create secret generic hyperfleet-driver-tokens --from-file=tokens" -}}
{{- end -}}
{{- if and .Values.auth.insecureNoAuth (or .Values.auth.operatorKeysSecret .Values.auth.issuersSecret) -}}
{{- fail "auth.insecureNoAuth has no effect beside auth.operatorKeysSecret and auth.issuersSecret: remove one of them" -}}
{{- end -}}
{{- if and .Values.hypershift.enabled .Values.backend.url -}}
{{- fail "hypershift.enabled works with the embedded HyperFleet: leave backend.url empty" -}}
{{- end -}}
{{- if and .Values.tls.clientCaSecret (not .Values.tls.secret) -}}
{{- fail "tls.clientCaSecret needs tls.secret" -}}
{{- end -}}
{{- if and (not .Values.backend.url) (or .Values.backend.tokenSecret .Values.backend.caConfigMap) -}}
{{- fail "backend.tokenSecret and backend.caConfigMap need backend.url" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled needs ingress.host" -}}
{{- end -}}
{{- end -}}

{{/* Refuses what N replicas on PostgreSQL cannot work with. */}}
{{- define "hfd.checkPostgres" -}}
{{- if not .Values.postgres.url -}}
{{- fail "store: postgres needs postgres.url: postgres://USER@HOST1,HOST2/DATABASE?sslmode=verify-full" -}}
{{- end -}}
{{- if or (regexMatch "^[a-z]+://[^/?#@]*:[^/?#@]*@" .Values.postgres.url) (regexMatch "[?&](password|sslpassword)=" .Values.postgres.url) -}}
{{- fail "postgres.url has a password, which everyone who reads the Deployment would see: put it into the Secret of postgres.passwordSecret" -}}
{{- end -}}
{{- if not (or .Values.postgres.passwordSecret (regexMatch "[?&]sslcert=" .Values.postgres.url)) -}}
{{- fail "store: postgres needs postgres.passwordSecret, or a client certificate in postgres.url (sslcert and sslkey). Make it: kubectl create secret generic hyperfleet-driver-postgres --from-file=password" -}}
{{- end -}}
{{- if and (regexMatch "[?&]sslmode=verify-" .Values.postgres.url) (not (or .Values.postgres.caConfigMap (regexMatch "[?&]sslrootcert=" .Values.postgres.url))) -}}
{{- fail "postgres.url has sslmode=verify-...: the authorities that it trusts are missing. Set postgres.caConfigMap: kubectl create configmap hyperfleet-driver-postgres-ca --from-file=ca.crt" -}}
{{- end -}}
{{- if not .Values.keys.secret -}}
{{- fail "store: postgres needs keys.secret: all replicas use one key ring, and none makes it. Make it: hyperfleet-driver keygen --keys keys; then kubectl create secret generic hyperfleet-driver-keys --from-file=keys" -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail "persistence.existingClaim is a volume of SQLite: leave it empty with store: postgres" -}}
{{- end -}}
{{- end -}}

{{/* The ports of the database's hosts, as a list: those of postgres.url, or 5432. */}}
{{- define "hfd.databasePorts" -}}
{{- $ports := list -}}
{{- $hosts := .Values.postgres.url | regexFind "^[a-z]+://[^/?#]*" | splitList "://" | last | splitList "@" | last -}}
{{- range splitList "," $hosts -}}
{{- $ports = append $ports (default "5432" (regexFind ":[0-9]+$" . | trimPrefix ":") | int) -}}
{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end -}}

{{/* What runs the pods. */}}
{{- define "hfd.workload" -}}
{{- if eq .Values.store "postgres" -}}deployment{{- else -}}statefulset{{- end -}}
{{- end -}}

{{/* A name for kubectl exec and port-forward. */}}
{{- define "hfd.aPod" -}}
{{- if eq .Values.store "postgres" -}}deployment/{{ include "hfd.fullname" . }}{{- else -}}{{ include "hfd.fullname" . }}-0{{- end -}}
{{- end -}}

{{/* The variables of settings that values of the chart make; a variable wins over the file. */}}
{{- define "hfd.env" -}}
{{- $made := dict "HFD_CONFIG" "/etc/hyperfleet-driver/config/config.yaml" "HFD_LISTEN" "0.0.0.0:8000" "HFD_OPS_LISTEN" "0.0.0.0:8080" -}}
{{- if eq .Values.store "postgres" -}}
{{- $_ := set $made "HFD_STORE" .Values.postgres.url -}}
{{- if .Values.postgres.passwordSecret -}}{{- $_ := set $made "HFD_STORE_PASSWORD_FILE" "/etc/hyperfleet-driver/postgres/password" -}}{{- end -}}
{{- else -}}
{{- $_ := set $made "HFD_DATA" "/data/driver" -}}
{{- end -}}
{{- with .Values.auth -}}
{{- if and .tokensSecret (not .insecureNoAuth) -}}{{- $_ := set $made "HFD_AUTH_TOKENS_FILE" "/etc/hyperfleet-driver/tokens/tokens" -}}{{- end -}}
{{- if .issuersSecret -}}{{- $_ := set $made "HFD_AUTH_ISSUERS" "/etc/hyperfleet-driver/issuers/issuers.yaml" -}}{{- end -}}
{{- if .operatorKeysSecret -}}
{{- $files := list -}}
{{- range .operatorKeys -}}{{- $files = append $files (printf "/etc/hyperfleet-driver/operator/%s" .) -}}{{- end -}}
{{- $_ := set $made "HFD_AUTH_OPERATOR_KEYS" (join "," $files) -}}
{{- end -}}
{{- if .insecureNoAuth -}}{{- $_ := set $made "HFD_INSECURE_NO_AUTH" "on" -}}{{- end -}}
{{- end -}}
{{- if .Values.keys.secret -}}{{- $_ := set $made "HFD_KEYS" "/run/hyperfleet-driver/keys/keys" -}}{{- end -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $made "HFD_TLS_CERT_FILE" "/etc/hyperfleet-driver/tls/tls.crt" -}}
{{- $_ := set $made "HFD_TLS_KEY_FILE" "/etc/hyperfleet-driver/tls/tls.key" -}}
{{- end -}}
{{- if .Values.tls.clientCaSecret -}}{{- $_ := set $made "HFD_TLS_CLIENT_CA_FILE" "/etc/hyperfleet-driver/client-ca/ca.crt" -}}{{- end -}}
{{- with .Values.backend -}}
{{- if .url -}}{{- $_ := set $made "HFD_BACKEND" .url -}}{{- end -}}
{{- if .tokenSecret -}}{{- $_ := set $made "HFD_REMOTE_TOKEN_FILE" "/etc/hyperfleet-driver/remote/token" -}}{{- end -}}
{{- if .caConfigMap -}}{{- $_ := set $made "HFD_REMOTE_CA_FILE" "/etc/hyperfleet-driver/remote-ca/ca.crt" -}}{{- end -}}
{{- end -}}
{{- with .Values.hypershift -}}
{{- if .enabled -}}
{{- $_ := set $made "HFD_HYPERSHIFT_KUBECONFIG" (ternary "/etc/hyperfleet-driver/management/kubeconfig" "in-cluster" (ne .kubeconfigSecret "")) -}}
{{- $_ := set $made "HFD_HYPERSHIFT_NAMESPACE" .namespace -}}
{{- if .releaseImage -}}{{- $_ := set $made "HFD_HYPERSHIFT_RELEASE_IMAGE" .releaseImage -}}{{- end -}}
{{- if .baseDomain -}}{{- $_ := set $made "HFD_HYPERSHIFT_BASE_DOMAIN" .baseDomain -}}{{- end -}}
{{- if .pullSecret -}}{{- $_ := set $made "HFD_HYPERSHIFT_PULL_SECRET_FILE" "/etc/hyperfleet-driver/pull-secret/.dockerconfigjson" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $made }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if .Values.postgres.caConfigMap }}
# libpq reads it: the authorities of the database, unless sslrootcert is in the URL.
- name: PGSSLROOTCERT
  value: /etc/hyperfleet-driver/postgres-ca/ca.crt
{{- end }}
{{- end -}}

{{/* What is mounted from Secrets and ConfigMaps: name, folder, kind, source. */}}
{{- define "hfd.mounts" -}}
{{- $v := .Values -}}
{{- $all := list (dict "name" "config" "kind" "configMap" "from" (include "hfd.fullname" .)) -}}
{{- if not $v.auth.insecureNoAuth -}}
{{- $all = append $all (dict "name" "tokens" "kind" "secret" "from" $v.auth.tokensSecret) -}}
{{- end -}}
{{- $all = append $all (dict "name" "operator" "kind" "secret" "from" $v.auth.operatorKeysSecret) -}}
{{- $all = append $all (dict "name" "issuers" "kind" "secret" "from" $v.auth.issuersSecret) -}}
{{- $all = append $all (dict "name" "tls" "kind" "secret" "from" $v.tls.secret) -}}
{{- $all = append $all (dict "name" "client-ca" "kind" "secret" "from" $v.tls.clientCaSecret) -}}
{{- $all = append $all (dict "name" "postgres" "kind" "secret" "from" $v.postgres.passwordSecret) -}}
{{- $all = append $all (dict "name" "postgres-ca" "kind" "configMap" "from" $v.postgres.caConfigMap) -}}
{{- $all = append $all (dict "name" "remote" "kind" "secret" "from" $v.backend.tokenSecret) -}}
{{- $all = append $all (dict "name" "remote-ca" "kind" "configMap" "from" $v.backend.caConfigMap) -}}
{{- range $name, $hook := $v.events.webhooks -}}
{{- $all = append $all (dict "name" (printf "webhook-%s" $name) "kind" "secret" "from" $hook.secret) -}}
{{- $all = append $all (dict "name" (printf "webhook-%s-ca" $name) "kind" "configMap" "from" $hook.caConfigMap) -}}
{{- end -}}
{{- if $v.events.rabbitmq.url -}}
{{- $all = append $all (dict "name" "rabbitmq" "kind" "secret" "from" $v.events.rabbitmq.passwordSecret) -}}
{{- $all = append $all (dict "name" "rabbitmq-ca" "kind" "configMap" "from" $v.events.rabbitmq.caConfigMap) -}}
{{- end -}}
{{- if $v.hypershift.enabled -}}
{{- $all = append $all (dict "name" "management" "kind" "secret" "from" $v.hypershift.kubeconfigSecret) -}}
{{- range $name, $from := $v.hypershift.managementSecrets -}}
{{- $all = append $all (dict "name" (printf "management-%s" $name) "kind" "secret" "from" $from) -}}
{{- end -}}
{{- $all = append $all (dict "name" "pull-secret" "kind" "secret" "from" $v.hypershift.pullSecret) -}}
{{- end -}}
{{- $used := list -}}
{{- range $all -}}{{- if .from -}}{{- $used = append $used . -}}{{- end -}}{{- end -}}
{{- toJson $used -}}
{{- end -}}
