//! apply --server-side: whose field it is, conflicts, what cannot be applied.

use expect_test::expect;

use super::{fixtures, session};

#[test]
fn server_side_apply_creates_changes_and_gives_up_fields() {
    let Some(kubectl) = session("server-side") else { return };
    kubectl.check(
        concat!(
            "
        kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
        kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
        kubectl get configmap app --show-managed-fields -o yaml
        kubectl get deployment web --show-managed-fields -o yaml
        sed -i '/mode: fast/d' configmap.yaml
        kubectl apply --server-side -f configmap.yaml --dry-run=server
        kubectl get configmap app -o jsonpath='{.data.mode}{\"\\n\"}'
        kubectl apply --server-side -f configmap.yaml
        kubectl get configmap app -o jsonpath='{.data}{\"\\n\"}'
        ",
            managers!("configmap app"),
        ),
        expect![[r#"
            $ kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
            configmap/app serverside-applied
            deployment.apps/web serverside-applied
            service/web serverside-applied
            $ kubectl apply --server-side -f configmap.yaml -f deployment.yaml -f service.yaml
            configmap/app serverside-applied
            deployment.apps/web serverside-applied
            service/web serverside-applied
            $ kubectl get configmap app --show-managed-fields -o yaml
            apiVersion: v1
            data:
              mode: fast
              motd: |
                hello
                world
            kind: ConfigMap
            metadata:
              creationTimestamp: "<time>"
              labels:
                app: web
                tier: front
              managedFields:
              - apiVersion: v1
                fieldsType: FieldsV1
                fieldsV1:
                  f:data:
                    f:mode: {}
                    f:motd: {}
                  f:metadata:
                    f:labels:
                      f:app: {}
                      f:tier: {}
                manager: kubectl
                operation: Apply
                time: "<time>"
              name: app
              namespace: server-side
              resourceVersion: "<rv>"
              uid: <uid>
            $ kubectl get deployment web --show-managed-fields -o yaml
            apiVersion: apps/v1
            kind: Deployment
            metadata:
              creationTimestamp: "<time>"
              generation: 1
              labels:
                app: web
              managedFields:
              - apiVersion: apps/v1
                fieldsType: FieldsV1
                fieldsV1:
                  f:metadata:
                    f:labels:
                      f:app: {}
                  f:spec:
                    f:replicas: {}
                    f:selector: {}
                    f:template:
                      f:metadata:
                        f:labels:
                          f:app: {}
                      f:spec:
                        f:containers:
                          k:{"name":"nginx"}:
                            .: {}
                            f:image: {}
                            f:name: {}
                            f:ports:
                              k:{"containerPort":80,"protocol":"TCP"}:
                                .: {}
                                f:containerPort: {}
                manager: kubectl
                operation: Apply
                time: "<time>"
              name: web
              namespace: server-side
              resourceVersion: "<rv>"
              uid: <uid>
            spec:
              progressDeadlineSeconds: 600
              replicas: 2
              revisionHistoryLimit: 10
              selector:
                matchLabels:
                  app: web
              strategy:
                rollingUpdate:
                  maxSurge: 25%
                  maxUnavailable: 25%
                type: RollingUpdate
              template:
                metadata:
                  labels:
                    app: web
                spec:
                  containers:
                  - image: nginx:1.29
                    imagePullPolicy: IfNotPresent
                    name: nginx
                    ports:
                    - containerPort: 80
                      protocol: TCP
                    resources: {}
                    terminationMessagePath: /dev/termination-log
                    terminationMessagePolicy: File
                  dnsPolicy: ClusterFirst
                  restartPolicy: Always
                  schedulerName: default-scheduler
                  securityContext: {}
                  terminationGracePeriodSeconds: 30
            status: {}
            $ sed -i '/mode: fast/d' configmap.yaml
            $ kubectl apply --server-side -f configmap.yaml --dry-run=server
            configmap/app serverside-applied (server dry run)
            $ kubectl get configmap app -o jsonpath='{.data.mode}{"\n"}'
            fast
            $ kubectl apply --server-side -f configmap.yaml
            configmap/app serverside-applied
            $ kubectl get configmap app -o jsonpath='{.data}{"\n"}'
            {"motd":"hello\nworld\n"}
            $ kubectl get configmap app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl Apply  {"f:data":{"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
        "#]],
    );
}

#[test]
fn what_other_commands_change_is_theirs_until_an_apply_forces_it() {
    let Some(kubectl) = session("theirs") else { return };
    kubectl.check(
        concat!(
            "
        kubectl apply --server-side -f deployment.yaml
        kubectl scale deployment web --replicas=3
        kubectl set image deployment/web nginx=nginx:1.30
        kubectl rollout restart deployment/web
        kubectl label deployment web app=other --overwrite
        kubectl annotate deployment web by=hand
        EDITOR='sed -i s/RollingUpdate/Recreate/;/maxSurge/d;/maxUnavailable/d;/rollingUpdate/d' kubectl edit deployment web
        ",
            managers!("deployment web"),
            "
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml --dry-run=server
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels} {.metadata.generation}{\"\\n\"}'
        kubectl apply --server-side --force-conflicts -f deployment.yaml
        ",
            managers!("deployment web"),
            "
        sed -i '/replicas: 2/d' deployment.yaml
        kubectl scale deployment web --replicas=7
        kubectl apply --server-side -f deployment.yaml
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels} {.metadata.generation}{\"\\n\"}'
        ",
        ),
        expect![[r#"
            $ kubectl apply --server-side -f deployment.yaml
            deployment.apps/web serverside-applied
            $ kubectl scale deployment web --replicas=3
            deployment.apps/web scaled
            $ kubectl set image deployment/web nginx=nginx:1.30
            deployment.apps/web image updated
            $ kubectl rollout restart deployment/web
            deployment.apps/web restarted
            $ kubectl label deployment web app=other --overwrite
            deployment.apps/web labeled
            $ kubectl annotate deployment web by=hand
            deployment.apps/web annotated
            $ EDITOR='sed -i s/RollingUpdate/Recreate/;/maxSurge/d;/maxUnavailable/d;/rollingUpdate/d' kubectl edit deployment web
            deployment.apps/web edited
            $ kubectl get deployment web --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl Apply  {"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}
            kubectl Update scale {"f:spec":{"f:replicas":{}}}
            kubectl-annotate Update  {"f:metadata":{"f:annotations":{".":{},"f:by":{}}}}
            kubectl-edit Update  {"f:spec":{"f:strategy":{"f:type":{}}}}
            kubectl-label Update  {"f:metadata":{"f:labels":{"f:app":{}}}}
            kubectl-rollout Update  {"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}
            kubectl-set Update  {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{}}}}}}}
            $ kubectl apply --server-side -f deployment.yaml
            ! error: Apply failed with 3 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:
            ! - .spec.replicas
            ! conflicts with "kubectl-label" using apps/v1:
            ! - .metadata.labels.app
            ! conflicts with "kubectl-set" using apps/v1:
            ! - .spec.template.spec.containers[name="nginx"].image
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side -f deployment.yaml --dry-run=server
            ! error: Apply failed with 3 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:
            ! - .spec.replicas
            ! conflicts with "kubectl-label" using apps/v1:
            ! - .metadata.labels.app
            ! conflicts with "kubectl-set" using apps/v1:
            ! - .spec.template.spec.containers[name="nginx"].image
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels} {.metadata.generation}{"\n"}'
            3 {"app":"other"} 6
            $ kubectl apply --server-side --force-conflicts -f deployment.yaml
            deployment.apps/web serverside-applied
            $ kubectl get deployment web --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            kubectl Apply  {"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}
            kubectl-annotate Update  {"f:metadata":{"f:annotations":{".":{},"f:by":{}}}}
            kubectl-edit Update  {"f:spec":{"f:strategy":{"f:type":{}}}}
            kubectl-rollout Update  {"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}
            $ sed -i '/replicas: 2/d' deployment.yaml
            $ kubectl scale deployment web --replicas=7
            deployment.apps/web scaled
            $ kubectl apply --server-side -f deployment.yaml
            deployment.apps/web serverside-applied
            $ kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels} {.metadata.generation}{"\n"}'
            7 {"app":"web"} 8
        "#]],
    );
}

#[test]
fn managers_conflict_share_and_give_up_fields() {
    let Some(kubectl) = session("conflicts") else { return };
    kubectl.check(
        concat!(
            "
        kubectl apply --server-side --field-manager=first -f configmap.yaml
        sed 's/mode: fast/mode: slow/' configmap.yaml > slow.yaml
        kubectl apply --server-side --field-manager=second -f slow.yaml
        kubectl apply --server-side --field-manager=second -f slow.yaml --dry-run=server
        kubectl apply --server-side --field-manager=second --force-conflicts -f slow.yaml
        ",
            managers!("configmap app"),
            "
        kubectl apply --server-side --field-manager=first -f configmap.yaml
        kubectl apply --server-side --field-manager=second -f configmap.yaml
        kubectl apply --server-side --field-manager=first -f configmap.yaml
        kubectl get configmap app -o jsonpath='{.data.mode}{\"\\n\"}'
        ",
            managers!("configmap app"),
        ),
        expect![[r#"
            $ kubectl apply --server-side --field-manager=first -f configmap.yaml
            configmap/app serverside-applied
            $ sed 's/mode: fast/mode: slow/' configmap.yaml > slow.yaml
            $ kubectl apply --server-side --field-manager=second -f slow.yaml
            ! error: Apply failed with 1 conflict: conflict with "first": .data.mode
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side --field-manager=second -f slow.yaml --dry-run=server
            ! error: Apply failed with 1 conflict: conflict with "first": .data.mode
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side --field-manager=second --force-conflicts -f slow.yaml
            configmap/app serverside-applied
            $ kubectl get configmap app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            first Apply  {"f:data":{"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
            second Apply  {"f:data":{"f:mode":{},"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
            $ kubectl apply --server-side --field-manager=first -f configmap.yaml
            ! error: Apply failed with 1 conflict: conflict with "second": .data.mode
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side --field-manager=second -f configmap.yaml
            configmap/app serverside-applied
            $ kubectl apply --server-side --field-manager=first -f configmap.yaml
            configmap/app serverside-applied
            $ kubectl get configmap app -o jsonpath='{.data.mode}{"\n"}'
            fast
            $ kubectl get configmap app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            first Apply  {"f:data":{"f:mode":{},"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
            second Apply  {"f:data":{"f:mode":{},"f:motd":{}},"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}
        "#]],
    );
}

#[test]
fn an_apply_that_cannot_be_says_why() {
    let Some(kubectl) = session("refused-apply") else { return };
    let map = |rest: &str| format!("{{apiVersion: v1, kind: ConfigMap, {rest}}}\n");
    kubectl.file("generated.yaml", &map("metadata: {generateName: g-}"));
    kubectl.file("unknown.yaml", &map("metadata: {name: u}, date: {a: b}"));
    kubectl.file("wrong.yaml", &map("metadata: {name: w}, data: {a: 1}"));
    kubectl.file(
        "managed.yaml",
        &map("metadata: {name: m, managedFields: [{manager: x, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}"),
    );
    kubectl.file("versioned.yaml", &map("metadata: {name: v, resourceVersion: \"1\"}"));
    kubectl.file("uid.yaml", &map("metadata: {name: i, uid: 6b6ad9a4-9ac4-4d6a-a0c7-ee1a2a3c2a11}"));
    kubectl.check(
        r#"
        kubectl apply --server-side -f generated.yaml
        kubectl apply --server-side -f unknown.yaml
        kubectl apply --server-side --validate=ignore -f unknown.yaml
        kubectl apply --server-side --validate=warn -f unknown.yaml
        kubectl apply --server-side -f wrong.yaml
        kubectl apply --server-side --validate=ignore -f wrong.yaml
        kubectl apply --server-side -f managed.yaml
        kubectl apply --server-side -f versioned.yaml
        kubectl apply --server-side -f uid.yaml
        kubectl apply --server-side --force-conflicts --dry-run=client -f configmap.yaml
        kubectl apply --force-conflicts -f configmap.yaml
        sed 's/image: nginx:1.29/&\n      - name: nginx\n        image: nginx:1.30/' deployment.yaml | kubectl apply --server-side -f -
        sed 's/- containerPort: 80/&\n        - containerPort: 80/' deployment.yaml | kubectl apply --server-side -f -
        sed 's/image: nginx:1.29/image: ""/' deployment.yaml | kubectl apply --server-side -f -
        sed 's/name: web$/name: Web/' deployment.yaml | kubectl apply --server-side -f -
        kubectl apply --server-side -n not-there -f configmap.yaml
        kubectl get configmap,deployment -o name | grep -v kube-root-ca
        "#,
        expect![[r#"
            $ kubectl apply --server-side -f generated.yaml
            ! error: from g-: cannot use generate name with apply
            exit 1
            $ kubectl apply --server-side -f unknown.yaml
            ! Error from server: failed to create typed patch object (refused-apply/u; /v1, Kind=ConfigMap): .date: field not declared in schema
            exit 1
            $ kubectl apply --server-side --validate=ignore -f unknown.yaml
            ! Error from server: failed to create typed patch object (refused-apply/u; /v1, Kind=ConfigMap): .date: field not declared in schema
            exit 1
            $ kubectl apply --server-side --validate=warn -f unknown.yaml
            ! Error from server: failed to create typed patch object (refused-apply/u; /v1, Kind=ConfigMap): .date: field not declared in schema
            exit 1
            $ kubectl apply --server-side -f wrong.yaml
            ! Error from server: failed to create typed patch object (refused-apply/w; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{Value:1}
            exit 1
            $ kubectl apply --server-side --validate=ignore -f wrong.yaml
            ! Error from server: failed to create typed patch object (refused-apply/w; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{Value:1}
            exit 1
            $ kubectl apply --server-side -f managed.yaml
            ! Error from server (BadRequest): metadata.managedFields must be nil
            exit 1
            $ kubectl apply --server-side -f versioned.yaml
            configmap/v serverside-applied
            $ kubectl apply --server-side -f uid.yaml
            ! error: Operation cannot be fulfilled on configmaps "i": uid mismatch: the provided object specified uid <uid>, and no existing object was found
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl apply --server-side --force-conflicts --dry-run=client -f configmap.yaml
            ! error: --dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)
            exit 1
            $ kubectl apply --force-conflicts -f configmap.yaml
            ! error: --force-conflicts only works with --server-side
            exit 1
            $ sed 's/image: nginx:1.29/&\n      - name: nginx\n        image: nginx:1.30/' deployment.yaml | kubectl apply --server-side -f -
            ! Error from server: failed to create typed patch object (refused-apply/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="nginx"]
            exit 1
            $ sed 's/- containerPort: 80/&\n        - containerPort: 80/' deployment.yaml | kubectl apply --server-side -f -
            ! Error from server: failed to create typed patch object (refused-apply/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="nginx"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]
            exit 1
            $ sed 's/image: nginx:1.29/image: ""/' deployment.yaml | kubectl apply --server-side -f -
            ! The Deployment "web" is invalid: spec.template.spec.containers[0].image: Required value
            exit 1
            $ sed 's/name: web$/name: Web/' deployment.yaml | kubectl apply --server-side -f -
            ! The Deployment "Web" is invalid: metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            exit 1
            $ kubectl apply --server-side -n not-there -f configmap.yaml
            ! Error from server (NotFound): namespaces "not-there" not found
            exit 1
            $ kubectl get configmap,deployment -o name | grep -v kube-root-ca
            configmap/v
        "#]],
    );
}

#[test]
fn custom_resources_are_applied_with_their_subresources() {
    let Some(kubectl) = session("custom-apply") else { return };
    kubectl.file("crd.yaml", &fixtures::crd("customapply.example.com"));
    kubectl.file("gadget.yaml", &fixtures::gadget("customapply.example.com", "g", "red"));
    kubectl.file(
        "status.yaml",
        "{apiVersion: customapply.example.com/v1, kind: Gadget, metadata: {name: g}, status: {replicas: 1, conditions: [{type: Ready, status: 'True'}]}}\n",
    );
    kubectl.file(
        "tags.yaml",
        "{apiVersion: customapply.example.com/v1, kind: Gadget, metadata: {name: g}, spec: {color: red, tags: [b, a]}}\n",
    );
    kubectl.check(
        concat!(
            "
        kubectl apply --server-side -f crd.yaml
        kubectl wait --for=condition=Established crd/gadgets.customapply.example.com
        kubectl apply --server-side -f crd.yaml
        kubectl apply --server-side -f gadget.yaml
        kubectl apply --server-side --field-manager=tagger -f tags.yaml
        kubectl patch gadget g --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/tags/-\",\"value\":\"c\"}]'
        kubectl scale gadget g --replicas=4
        kubectl apply --server-side --subresource=status --field-manager=controller -f status.yaml
        ",
            managers!("gadget g"),
            "
        sed -i 's/red/blue/' gadget.yaml
        kubectl apply --server-side -f gadget.yaml
        kubectl diff --server-side --force-conflicts -f gadget.yaml | grep '^[-+] '
        kubectl apply --server-side --force-conflicts -f gadget.yaml
        sed -i 's/\\[b, a\\]/[d]/' tags.yaml
        kubectl apply --server-side --field-manager=tagger --force-conflicts -f tags.yaml
        kubectl get gadget g -o jsonpath='{.spec} {.status}{\"\\n\"}'
        sed 's/color: blue/color: pink/' gadget.yaml | kubectl apply --server-side -f -
        sed 's/color: blue/colour: blue/' gadget.yaml | kubectl apply --server-side -f -
        ",
        ),
        expect![[r#"
            $ kubectl apply --server-side -f crd.yaml
            customresourcedefinition.apiextensions.k8s.io/gadgets.customapply.example.com serverside-applied
            $ kubectl wait --for=condition=Established crd/gadgets.customapply.example.com
            customresourcedefinition.apiextensions.k8s.io/gadgets.customapply.example.com condition met
            $ kubectl apply --server-side -f crd.yaml
            customresourcedefinition.apiextensions.k8s.io/gadgets.customapply.example.com serverside-applied
            $ kubectl apply --server-side -f gadget.yaml
            gadget.customapply.example.com/g serverside-applied
            $ kubectl apply --server-side --field-manager=tagger -f tags.yaml
            gadget.customapply.example.com/g serverside-applied
            $ kubectl patch gadget g --type=json -p '[{"op":"add","path":"/spec/tags/-","value":"c"}]'
            gadget.customapply.example.com/g patched
            $ kubectl scale gadget g --replicas=4
            gadget.customapply.example.com/g scaled
            $ kubectl apply --server-side --subresource=status --field-manager=controller -f status.yaml
            gadget.customapply.example.com/g serverside-applied
            $ kubectl get gadget g --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort
            controller Apply status {"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},"f:replicas":{}}}
            kubectl Apply  {"f:spec":{"f:color":{},"f:owner":{}}}
            kubectl Update scale {"f:spec":{"f:replicas":{}}}
            kubectl-patch Update  {"f:spec":{"f:tags":{"v:\"c\"":{}}}}
            tagger Apply  {"f:spec":{"f:color":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}}
            $ sed -i 's/red/blue/' gadget.yaml
            $ kubectl apply --server-side -f gadget.yaml
            ! error: Apply failed with 2 conflicts: conflicts with "kubectl" with subresource "scale" using customapply.example.com/v1:
            ! - .spec.replicas
            ! conflicts with "tagger":
            ! - .spec.color
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ kubectl diff --server-side --force-conflicts -f gadget.yaml | grep '^[-+] '
            -  generation: 4
            +  generation: 5
            -  color: red
            +  color: blue
            -  replicas: 4
            +  replicas: 1
            $ kubectl apply --server-side --force-conflicts -f gadget.yaml
            gadget.customapply.example.com/g serverside-applied
            $ sed -i 's/\[b, a\]/[d]/' tags.yaml
            $ kubectl apply --server-side --field-manager=tagger --force-conflicts -f tags.yaml
            gadget.customapply.example.com/g serverside-applied
            $ kubectl get gadget g -o jsonpath='{.spec} {.status}{"\n"}'
            {"color":"red","owner":"me","replicas":1,"size":3,"tags":["c","d"]} {"conditions":[{"status":"True","type":"Ready"}],"replicas":1}
            $ sed 's/color: blue/color: pink/' gadget.yaml | kubectl apply --server-side -f -
            ! error: Apply failed with 1 conflict: conflict with "tagger": .spec.color
            ! Please review the fields above--they currently have other managers. Here
            ! are the ways you can resolve this warning:
            ! * If you intend to manage all of these fields, please re-run the apply
            !   command with the `--force-conflicts` flag.
            ! * If you do not intend to manage all of the fields, please edit your
            !   manifest to remove references to the fields that should keep their
            !   current managers.
            ! * You may co-own fields by updating your manifest to match the existing
            !   value; in this case, you'll become the manager if the other manager(s)
            !   stop managing the field (remove it from their configuration).
            ! See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
            exit 1
            $ sed 's/color: blue/colour: blue/' gadget.yaml | kubectl apply --server-side -f -
            ! Error from server: failed to create typed patch object (custom-apply/g; customapply.example.com/v1, Kind=Gadget): .spec.colour: field not declared in schema
            exit 1
        "#]],
    );
}
