//! The YAML that the sessions have at hand: plain manifests as people write them.

use forebay_clients::Session;

pub fn write(session: &Session<'_>) {
    for (name, text) in [
        ("configmap.yaml", CONFIGMAP),
        ("secret.yaml", SECRET),
        ("pod.yaml", POD),
        ("deployment.yaml", DEPLOYMENT),
        ("service.yaml", SERVICE),
        ("job.yaml", JOB),
        ("event.yaml", EVENT),
    ] {
        session.file(name, text);
    }
}

const CONFIGMAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  labels: {app: web, tier: front}
data:
  mode: fast
  motd: |
    hello
    world
";

const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: login
type: Opaque
stringData:
  user: admin
data:
  password: czNjcmV0
";

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: web-0
  labels: {app: web}
spec:
  containers:
  - name: nginx
    image: nginx:1.29
    ports:
    - containerPort: 80
    env:
    - {name: MODE, value: fast}
    resources:
      requests: {cpu: 100m, memory: 64Mi}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: nginx
        image: nginx:1.29
        ports:
        - containerPort: 80
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: {app: web}
spec:
  clusterIP: None
  selector: {app: web}
  ports:
  - name: http
    port: 80
    targetPort: 8080
";

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: once
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: once
        image: busybox:1.37
        command: [\"true\"]
";

const EVENT: &str = "\
apiVersion: v1
kind: Event
metadata:
  name: web-0.1
involvedObject: {apiVersion: v1, kind: Pod, name: web-0, namespace: events}
reason: Started
message: Started container nginx
type: Normal
count: 1
source: {component: kubelet, host: n1}
";

/// The CRD `gadgets.<group>`, kind Gadget: two versions, subresources, columns, a short name, a category,
/// selectable fields.
///
/// `gd-` and `things-` are followed by the first word of the group: tests share a server.
pub fn crd(group: &str) -> String {
    let word = group.split('.').next().unwrap_or(group);
    format!(
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.{group}
spec:
  group: {group}
  scope: Namespaced
  names:
    plural: gadgets
    singular: gadget
    kind: Gadget
    listKind: GadgetList
    shortNames: [gd-{word}]
    categories: [things-{word}]
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields:
    - jsonPath: .spec.color
    additionalPrinterColumns:
    - {{name: Color, type: string, jsonPath: .spec.color}}
    - {{name: Size, type: integer, jsonPath: .spec.size}}
    - {{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type==\"Ready\")].status'}}
    - {{name: Owner, type: string, jsonPath: .spec.owner, priority: 1}}
    - {{name: Age, type: date, jsonPath: .metadata.creationTimestamp}}
    subresources:
      status: {{}}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    schema:
      openAPIV3Schema:
        type: object
        description: A gadget is a thing to try.
        required: [spec]
        properties:
          spec:
            type: object
            description: What the gadget should be.
            required: [color]
            properties:
              color:
                type: string
                description: How it looks.
                enum: [red, green, blue]
              size: {{type: integer, minimum: 1, maximum: 10, default: 3}}
              replicas: {{type: integer, format: int32}}
              owner: {{type: string, maxLength: 8}}
              tags:
                type: array
                x-kubernetes-list-type: set
                items: {{type: string}}
          status:
            type: object
            properties:
              replicas: {{type: integer, format: int32}}
              selector: {{type: string}}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {{type: string}}
                    status: {{type: string}}
                    reason: {{type: string}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
"
    )
}

/// A Gadget that the schema accepts.
pub fn gadget(group: &str, name: &str, color: &str) -> String {
    format!(
        "\
apiVersion: {group}/v1
kind: Gadget
metadata:
  name: {name}
spec:
  color: {color}
  owner: me
  replicas: 1
"
    )
}
