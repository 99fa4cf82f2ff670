// The chart: objects of built-in kinds, a kind of its own with an object of it, a hook, and what the server can do.

package helm

import "helm.sh/helm/v3/pkg/chart"

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.helm.forebay.test}
spec:
  group: helm.forebay.test
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
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  mode: {{ .Values.mode }}
{{- if .Values.extra }}
  extra: "yes"
{{- end }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  served: {{ list (.Capabilities.APIVersions.Has "apps/v1/Deployment") (.Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget") (.Capabilities.APIVersions.Has "apps/v9") | join "," | quote }}
  found: {{ (lookup "v1" "Namespace" "" .Release.Namespace).metadata.name }}
`

const kept = `
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Values.app }}}}
  template:
    metadata: {labels: {app: {{ .Values.app }}}}
    spec:
      containers:
      - name: main
        image: {{ .Values.image }}
        ports: [{name: http, containerPort: 80}]
`

const widget = `
apiVersion: helm.forebay.test/v1
kind: Widget
metadata: {name: w}
spec: {mode: {{ .Values.mode }}{{ if .Values.extra }}, extra: true{{ end }}}
`

const hook = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: hook
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: hook-succeeded
`

func webChart(version string) *chart.Chart {
	file := func(name, text string) *chart.File { return &chart.File{Name: name, Data: []byte(text)} }
	return &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: version, KubeVersion: ">= 1.30.0-0"},
		Values:   map[string]any{"mode": "one", "extra": true, "replicas": 2, "image": "registry.test/main:1", "app": "web"},
		Files:    []*chart.File{file("crds/widgets.yaml", definition)},
		Templates: []*chart.File{
			file("templates/settings.yaml", configMap),
			file("templates/kept.yaml", kept),
			file("templates/service.yaml", service),
			file("templates/deployment.yaml", deployment),
			file("templates/widget.yaml", widget),
			file("templates/hook.yaml", hook),
		},
	}
}
