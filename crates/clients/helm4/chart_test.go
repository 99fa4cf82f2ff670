// The chart: what `helm create` writes and what charts commonly add to it, a kind of its own, a hook that runs a Job.

package helm4

import (
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var widgets = schema.GroupVersionResource{Group: "helm4.forebay.test", Version: "v1", Resource: "widgets"}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.helm4.forebay.test}
spec:
  group: helm4.forebay.test
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, mode: {type: string}}}
`

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  mode: {{ .Values.mode }}
{{- if .Values.extra }}
  extra: "yes"
{{- end }}
`

const login = `
apiVersion: v1
kind: Secret
metadata: {name: login}
type: Opaque
stringData: {user: admin}
data: {password: {{ .Values.password | b64enc }}}
`

const access = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list{{ if .Values.extra }}, watch{{ end }}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects:
- {kind: ServiceAccount, name: web, namespace: {{ .Release.Namespace }}}
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: ClusterIP
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: http, protocol: TCP}
{{- if .Values.extra }}
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53}
{{- end }}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      securityContext: {}
      containers:
      - name: main
        image: registry.test/main:1
        imagePullPolicy: IfNotPresent
        ports: [{name: http, containerPort: 80, protocol: TCP}]
        livenessProbe: {httpGet: {path: /, port: http}}
        readinessProbe: {httpGet: {path: /, port: http}}
        resources: {requests: {cpu: 1000m, memory: 64Mi}}
        env:
        - {name: MODE, value: {{ .Values.mode }}}
{{- if .Values.extra }}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}
        volumeMounts: [{name: settings, mountPath: /etc/web, readOnly: true}]
      volumes:
      - {name: settings, configMap: {name: settings}}
{{- end }}
`

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: nginx
  tls: [{hosts: [web.test], secretName: login}]
  rules:
  - host: web.test
    http: {paths: [{path: /{{ .Values.mode }}, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`

const cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: registry.test/sweep:1, args: [{{ .Values.mode }}]}]
`

const widget = `
apiVersion: helm4.forebay.test/v1
kind: Widget
metadata: {name: w}
spec: {parts: [{name: a, mode: {{ .Values.mode }}}{{ if .Values.extra }}, {name: b}{{ end }}]}
`

const hook = `
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.test/migrate:1, args: [{{ .Values.mode }}]}]
`

func webChart(version string) *chart.Chart {
	file := func(name, text string) *common.File { return &common.File{Name: name, Data: []byte(text)} }
	return &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: version, AppVersion: "1"},
		Values:   map[string]any{"mode": "one", "extra": true, "replicas": 2, "password": "secret"},
		Files:    []*common.File{file("crds/widgets.yaml", definition)},
		Templates: []*common.File{
			file("templates/settings.yaml", settings),
			file("templates/login.yaml", login),
			file("templates/access.yaml", access),
			file("templates/service.yaml", service),
			file("templates/deployment.yaml", deployment),
			file("templates/ingress.yaml", ingress),
			file("templates/cronjob.yaml", cronJob),
			file("templates/widget.yaml", widget),
			file("templates/hook.yaml", hook),
		},
	}
}
