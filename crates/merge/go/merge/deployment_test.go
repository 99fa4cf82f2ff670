package merge_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/fixture"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// deployment is one of some 8 KB of JSON.
func deployment(parser typed.ParseableType, image string, variables int) *typed.TypedValue {
	variable := ""
	for i := 0; i < variables; i++ {
		variable += fmt.Sprintf(`
        - {name: VARIABLE_%02d, valueFrom: {configMapKeyRef: {name: settings, key: variable-%02d}}}`, i, i)
	}
	containers := ""
	for _, name := range []string{"main", "sidecar", "metrics"} {
		containers += fmt.Sprintf(`
      - name: %[1]s
        image: registry.example.com/%[1]s:%[2]s
        args: ["--listen=0.0.0.0:8080", "--config=/etc/%[1]s/config.yaml", "--log-level=info"]
        ports:
        - {name: http, containerPort: 8080}
        - {name: metrics, containerPort: 9090, protocol: TCP}
        resources: {limits: {cpu: 500m, memory: 256Mi}, requests: {cpu: 100m, memory: 128Mi}}
        livenessProbe: {httpGet: {path: /healthz, port: http}, initialDelaySeconds: 10, periodSeconds: 10}
        readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, failureThreshold: 3}
        volumeMounts:
        - {name: config, mountPath: /etc/%[1]s}
        - {name: data, mountPath: /data, readOnly: true}
        securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        env: %[3]s`, name, image, variable)
	}
	object, err := parser.FromYAML(typed.YAMLObject(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
  namespace: default
  labels: {app: app, app.kubernetes.io/name: app, app.kubernetes.io/part-of: shop, tier: backend}
  annotations: {example.com/owner: "team-a", example.com/description: "what the shop sells"}
spec:
  selector: {matchLabels: {app: app}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: app, tier: backend}}
    spec:
      serviceAccountName: app
      terminationGracePeriodSeconds: 30
      volumes:
      - {name: config, configMap: {name: app}}
      - {name: data, emptyDir: {}}
      tolerations:
      - {key: dedicated, operator: Equal, value: shop, effect: NoSchedule}
      containers: %s
`, containers)))
	if err != nil {
		panic(err)
	}
	object, err = parser.FromUnstructured(plain(object.AsValue()))
	if err != nil {
		panic(err)
	}
	return object
}

// plain is a value as the server has it, rather than as YAML is read.
func plain(v value.Value) any {
	switch {
	case v.IsList():
		items := []any{}
		for i := 0; i < v.AsList().Length(); i++ {
			items = append(items, plain(v.AsList().At(i)))
		}
		return items
	case v.IsMap():
		members := map[string]any{}
		v.AsMap().Iterate(func(name string, member value.Value) bool {
			members[name] = plain(member)
			return true
		})
		return members
	case v.IsInt():
		return v.AsInt()
	default:
		return v.Unstructured()
	}
}

func withStatus(parser typed.ParseableType, object *typed.TypedValue, replicas int) *typed.TypedValue {
	copied := plain(object.AsValue()).(map[string]any)
	copied["status"] = map[string]any{
		"replicas": int64(replicas), "readyReplicas": int64(replicas), "observedGeneration": int64(2),
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
	}
	result, err := parser.FromUnstructured(copied)
	if err != nil {
		panic(err)
	}
	return result
}

func deploymentState() (fixture.State, typed.ParseableType) {
	parser := k8s.Type("io.k8s.api.apps.v1.Deployment")
	builder := merge.UpdaterBuilder{Converter: sameConverter{}}
	state := fixture.State{Updater: builder.BuildUpdater(), Parser: fixture.SameVersionParser{T: parser}}
	if err := state.ApplyObject(deployment(parser, "1.0", 18), "apps/v1", "kubectl", false); err != nil {
		panic(err)
	}
	if err := state.UpdateObject(withStatus(parser, state.Live, 1), "apps/v1", "controller"); err != nil {
		panic(err)
	}
	state.Managers = throughJSON(state.Managers)
	return state, parser
}

// TestRecordDeployment applies and updates a Deployment.
func TestRecordDeployment(t *testing.T) {
	state, parser := deploymentState()
	if err := state.UpdateObject(withStatus(parser, state.Live, 3), "apps/v1", "controller"); err != nil {
		panic(err)
	}
	for _, config := range []*typed.TypedValue{deployment(parser, "1.1", 18), deployment(parser, "1.1", 16)} {
		if err := state.ApplyObject(config, "apps/v1", "kubectl", false); err != nil {
			panic(err)
		}
	}
	if state.ApplyObject(deployment(parser, "2.0", 18), "apps/v1", "other", false) == nil {
		panic("no conflict")
	}
}

func BenchmarkDeployment(b *testing.B) {
	state, parser := deploymentState()
	config, updated := deployment(parser, "1.1", 18), withStatus(parser, state.Live, 3)
	copied := func() fieldpath.ManagedFields { return state.Managers.Copy() }
	b.Run("apply", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			if _, _, err := state.Updater.Apply(state.Live, config, "apps/v1", copied(), "kubectl", false); err != nil {
				panic(err)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			if _, _, err := state.Updater.Update(state.Live, updated, "apps/v1", copied(), "controller"); err != nil {
				panic(err)
			}
		}
	})
}
