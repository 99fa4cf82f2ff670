//! CustomResourceDefinitions and the objects they define.

use std::time::Duration;

use expect_test::expect;
use forebay_clients::{Session, wait};

use super::{fixtures, session};

/// A session whose namespace is also the first word of the group of its own CRD, which is established.
fn with_crd(name: &str) -> Option<Session<'static>> {
    let session = session(name)?;
    let group = format!("{name}.example.com");
    session.file("crd.yaml", &fixtures::crd(&group));
    session.file("red.yaml", &fixtures::gadget(&group, "red", "red"));
    session.file("blue.yaml", &fixtures::gadget(&group, "blue", "blue"));
    session.run("kubectl create -f crd.yaml");
    session.run(&format!("kubectl wait crd/gadgets.{group} --for=condition=Established"));
    served(&session, &group);
    Some(session)
}

/// Waits until kubectl finds the resource: discovery tells of it a moment after it is established.
fn served(session: &Session<'_>, group: &str) {
    let found = wait::until("the resource is found", Duration::from_secs(120), || {
        let said = session.transcript(&format!("kubectl get gadgets.{group}"));
        if said.contains("No resources found") { Ok(()) } else { Err(said) }
    });
    found.unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_definition_is_established_and_shown() {
    let Some(kubectl) = with_crd("crdshown") else { return };
    kubectl.check(
        r#"
        kubectl get crd gadgets.crdshown.example.com -o custom-columns=NAME:.metadata.name
        kubectl get crd gadgets.crdshown.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}{.status.acceptedNames}{"\n"}{.status.storedVersions}{"\n"}'
        kubectl apply -f crd.yaml
        kubectl apply -f crd.yaml
        kubectl get crd gadgets.crdshown.example.com -o jsonpath='{.spec.conversion} {.metadata.generation}{"\n"}'
        kubectl api-resources --api-group=crdshown.example.com -o wide
        kubectl api-versions | grep crdshown
        kubectl get --raw /apis/crdshown.example.com/v1
        kubectl get --raw /apis/crdshown.example.com
        "#,
        expect![[r#"
            $ kubectl get crd gadgets.crdshown.example.com -o custom-columns=NAME:.metadata.name
            NAME
            gadgets.crdshown.example.com
            $ kubectl get crd gadgets.crdshown.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}{.status.acceptedNames}{"\n"}{.status.storedVersions}{"\n"}'
            NamesAccepted=True NoConflicts: no conflicts found
            Established=True InitialNamesAccepted: the initial names have been accepted
            {"categories":["things-crdshown"],"kind":"Gadget","listKind":"GadgetList","plural":"gadgets","shortNames":["gd-crdshown"],"singular":"gadget"}
            ["v1"]
            $ kubectl apply -f crd.yaml
            customresourcedefinition.apiextensions.k8s.io/gadgets.crdshown.example.com configured
            ! Warning: resource customresourcedefinitions/gadgets.crdshown.example.com is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
            $ kubectl apply -f crd.yaml
            customresourcedefinition.apiextensions.k8s.io/gadgets.crdshown.example.com unchanged
            $ kubectl get crd gadgets.crdshown.example.com -o jsonpath='{.spec.conversion} {.metadata.generation}{"\n"}'
            {"strategy":"None"} 1
            $ kubectl api-resources --api-group=crdshown.example.com -o wide
            NAME      SHORTNAMES    APIVERSION                NAMESPACED   KIND     VERBS                                                        CATEGORIES
            gadgets   gd-crdshown   crdshown.example.com/v1   true         Gadget   delete,deletecollection,get,list,patch,create,update,watch   things-crdshown
            $ kubectl api-versions | grep crdshown
            crdshown.example.com/v1
            crdshown.example.com/v1beta1
            $ kubectl get --raw /apis/crdshown.example.com/v1
            {"kind":"APIResourceList","apiVersion":"v1","groupVersion":"crdshown.example.com/v1","resources":[{"name":"gadgets","singularName":"gadget","namespaced":true,"kind":"Gadget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["gd-crdshown"],"categories":["things-crdshown"],"storageVersionHash":"zAL5pC4j6k0="},{"name":"gadgets/status","singularName":"","namespaced":true,"kind":"Gadget","verbs":["get","patch","update"]},{"name":"gadgets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}]}
            $ kubectl get --raw /apis/crdshown.example.com
            {"kind":"APIGroup","apiVersion":"v1","name":"crdshown.example.com","versions":[{"groupVersion":"crdshown.example.com/v1","version":"v1"},{"groupVersion":"crdshown.example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"crdshown.example.com/v1","version":"v1"}}
        "#]],
    );
}

#[test]
fn custom_objects_are_read_and_written() {
    let Some(kubectl) = with_crd("gadgets") else { return };
    kubectl.check(
        r#"
        kubectl apply -f red.yaml -f blue.yaml
        kubectl apply -f red.yaml -f blue.yaml
        kubectl get gd-gadgets
        kubectl get gadgets.gadgets.example.com -o wide
        kubectl get gadget.v1.gadgets.example.com red -o yaml
        kubectl get gadgets.v1beta1.gadgets.example.com red -o jsonpath='{.apiVersion} {.spec}{"\n"}'
        kubectl get gadgets.v1beta1.gadgets.example.com red
        kubectl get things-gadgets -o name
        kubectl get gd-gadgets --field-selector spec.color=red -o name
        kubectl get gd-gadgets --field-selector spec.size=3 -o name
        kubectl patch gd-gadgets red --type=merge -p '{"spec":{"size":4},"status":{"replicas":9}}'
        kubectl get gd-gadgets red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
        kubectl patch gd-gadgets red --subresource=status --type=merge -p '{"spec":{"size":9},"status":{"replicas":1,"selector":"a=b","conditions":[{"type":"Ready","status":"True"}]}}'
        kubectl get gd-gadgets red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
        kubectl get gd-gadgets red
        kubectl wait gd-gadgets/red --for=condition=Ready
        kubectl scale gd-gadgets red --replicas=3
        kubectl get --raw /apis/gadgets.example.com/v1/namespaces/gadgets/gadgets/red/scale
        kubectl patch gd-gadgets red --type=json -p '[{"op":"replace","path":"/spec/color","value":"green"}]'
        kubectl patch gd-gadgets red -p '{"spec":{"color":"blue"}}'
        kubectl label gd-gadgets red a=b
        EDITOR='sed -i s/green/blue/' kubectl edit gd-gadgets red
        kubectl get gd-gadgets -l a=b
        kubectl delete gd-gadgets red
        kubectl delete gd-gadgets --all
        kubectl get gd-gadgets
        "#,
        expect![[r#"
            $ kubectl apply -f red.yaml -f blue.yaml
            gadget.gadgets.example.com/red created
            gadget.gadgets.example.com/blue created
            $ kubectl apply -f red.yaml -f blue.yaml
            gadget.gadgets.example.com/red unchanged
            gadget.gadgets.example.com/blue unchanged
            $ kubectl get gd-gadgets
            NAME   COLOR   SIZE   READY   AGE
            blue   blue    3              <age>
            red    red     3              <age>
            $ kubectl get gadgets.gadgets.example.com -o wide
            NAME   COLOR   SIZE   READY   OWNER   AGE
            blue   blue    3              me      <age>
            red    red     3              me      <age>
            $ kubectl get gadget.v1.gadgets.example.com red -o yaml
            apiVersion: gadgets.example.com/v1
            kind: Gadget
            metadata:
              annotations:
                kubectl.kubernetes.io/last-applied-configuration: |
                  {"apiVersion":"gadgets.example.com/v1","kind":"Gadget","metadata":{"annotations":{},"name":"red","namespace":"gadgets"},"spec":{"color":"red","owner":"me","replicas":1}}
              creationTimestamp: "<time>"
              generation: 1
              name: red
              namespace: gadgets
              resourceVersion: "<rv>"
              uid: <uid>
            spec:
              color: red
              owner: me
              replicas: 1
              size: 3
            $ kubectl get gadgets.v1beta1.gadgets.example.com red -o jsonpath='{.apiVersion} {.spec}{"\n"}'
            gadgets.example.com/v1beta1 {"color":"red","owner":"me","replicas":1,"size":3}
            $ kubectl get gadgets.v1beta1.gadgets.example.com red
            NAME   AGE
            red    <age>
            $ kubectl get things-gadgets -o name
            gadget.gadgets.example.com/blue
            gadget.gadgets.example.com/red
            $ kubectl get gd-gadgets --field-selector spec.color=red -o name
            gadget.gadgets.example.com/red
            $ kubectl get gd-gadgets --field-selector spec.size=3 -o name
            ! Error from server (BadRequest): Unable to find "gadgets.example.com/v1, Resource=gadgets" that match label selector "", field selector "spec.size=3": field label not supported: spec.size
            exit 1
            $ kubectl patch gd-gadgets red --type=merge -p '{"spec":{"size":4},"status":{"replicas":9}}'
            gadget.gadgets.example.com/red patched
            $ kubectl get gd-gadgets red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
            2 {"color":"red","owner":"me","replicas":1,"size":4}
            $ kubectl patch gd-gadgets red --subresource=status --type=merge -p '{"spec":{"size":9},"status":{"replicas":1,"selector":"a=b","conditions":[{"type":"Ready","status":"True"}]}}'
            gadget.gadgets.example.com/red patched
            $ kubectl get gd-gadgets red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
            2 {"color":"red","owner":"me","replicas":1,"size":4} {"conditions":[{"status":"True","type":"Ready"}],"replicas":1,"selector":"a=b"}
            $ kubectl get gd-gadgets red
            NAME   COLOR   SIZE   READY   AGE
            red    red     4      True    <age>
            $ kubectl wait gd-gadgets/red --for=condition=Ready
            gadget.gadgets.example.com/red condition met
            $ kubectl scale gd-gadgets red --replicas=3
            gadget.gadgets.example.com/red scaled
            $ kubectl get --raw /apis/gadgets.example.com/v1/namespaces/gadgets/gadgets/red/scale
            {"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"red","namespace":"gadgets","uid":"<uid>","resourceVersion":"<rv>","creationTimestamp":"<time>"},"spec":{"replicas":3},"status":{"replicas":1,"selector":"a=b"}}
            $ kubectl patch gd-gadgets red --type=json -p '[{"op":"replace","path":"/spec/color","value":"green"}]'
            gadget.gadgets.example.com/red patched
            $ kubectl patch gd-gadgets red -p '{"spec":{"color":"blue"}}'
            ! error: application/strategic-merge-patch+json is not supported by gadgets.example.com/v1, Kind=Gadget: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
            exit 1
            $ kubectl label gd-gadgets red a=b
            gadget.gadgets.example.com/red labeled
            $ EDITOR='sed -i s/green/blue/' kubectl edit gd-gadgets red
            gadget.gadgets.example.com/red edited
            $ kubectl get gd-gadgets -l a=b
            NAME   COLOR   SIZE   READY   AGE
            red    blue    4      True    <age>
            $ kubectl delete gd-gadgets red
            gadget.gadgets.example.com "red" deleted from gadgets namespace
            $ kubectl delete gd-gadgets --all
            gadget.gadgets.example.com "blue" deleted from gadgets namespace
            $ kubectl get gd-gadgets
            ! No resources found in gadgets namespace.
        "#]],
    );
}

#[test]
fn an_invalid_custom_object_is_told_all_that_is_wrong() {
    let Some(kubectl) = with_crd("wrong") else { return };
    let head = "apiVersion: wrong.example.com/v1\nkind: Gadget\nmetadata: {name: bad}\n";
    kubectl.file(
        "bad.yaml",
        &format!("{head}spec: {{color: pink, size: 11, owner: far too long, tags: [a, a]}}\n"),
    );
    kubectl.file("one.yaml", &format!("{head}spec: {{color: pink}}\n"));
    kubectl.file("type.yaml", &format!("{head}spec: {{color: 1, size: big}}\n"));
    kubectl.file("empty.yaml", head);
    kubectl.file("unknown.yaml", &format!("{head}spec: {{color: red, colour: red}}\nextra: 1\n"));
    kubectl.check(
        "
        kubectl create -f bad.yaml
        kubectl create -f one.yaml
        kubectl create -f type.yaml
        kubectl create -f empty.yaml
        kubectl create -f unknown.yaml
        kubectl create --validate=warn -f unknown.yaml
        kubectl get gadgets.wrong.example.com bad -o jsonpath='{.spec}{.extra}{\"\\n\"}'
        kubectl apply -f bad.yaml
        kubectl patch gadgets.wrong.example.com bad --type=merge -p '{\"spec\":{\"color\":null}}'
        ",
        expect![[r#"
            $ kubectl create -f bad.yaml
            ! The Gadget "bad" is invalid:
            ! * spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"
            ! * spec.owner: Too long: may not be more than 8 bytes
            ! * spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
            ! * spec.tags[1]: Duplicate value: "a"
            exit 1
            $ kubectl create -f one.yaml
            ! The Gadget "bad" is invalid: spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"
            exit 1
            $ kubectl create -f type.yaml
            ! The Gadget "bad" is invalid:
            ! * spec.color: Invalid value: "integer": spec.color in body must be of type string: "integer"
            ! * spec.color: Unsupported value: 1: supported values: "red", "green", "blue"
            ! * spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"
            exit 1
            $ kubectl create -f empty.yaml
            ! The Gadget "bad" is invalid: spec: Required value
            exit 1
            $ kubectl create -f unknown.yaml
            ! Error from server (BadRequest): error when creating "unknown.yaml": Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: unknown field "extra", unknown field "spec.colour"
            exit 1
            $ kubectl create --validate=warn -f unknown.yaml
            gadget.wrong.example.com/bad created
            ! Warning: unknown field "extra"
            ! Warning: unknown field "spec.colour"
            $ kubectl get gadgets.wrong.example.com bad -o jsonpath='{.spec}{.extra}{"\n"}'
            {"color":"red","size":3}
            $ kubectl apply -f bad.yaml
            ! Warning: resource gadgets/bad is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
            ! The Gadget "bad" is invalid:
            ! * spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"
            ! * spec.owner: Too long: may not be more than 8 bytes
            ! * spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
            ! * spec.tags[1]: Duplicate value: "a"
            exit 1
            $ kubectl patch gadgets.wrong.example.com bad --type=merge -p '{"spec":{"color":null}}'
            ! The Gadget "bad" is invalid: spec.color: Required value
            exit 1
        "#]],
    );
}

#[test]
fn a_wrong_definition_is_refused() {
    let Some(kubectl) = session("wrongcrd") else { return };
    let crd = fixtures::crd("wrongcrd.example.com");
    kubectl.file("name.yaml", &crd.replace("name: gadgets.wrongcrd", "name: gadget.wrongcrd"));
    kubectl.file("storage.yaml", &crd.replace("storage: false", "storage: true"));
    kubectl.file(
        "schema.yaml",
        &crd.replace("minimum: 1, maximum: 10, default: 3", "minimum: 1, maximum: 10, default: 30"),
    );
    kubectl.file(
        "structural.yaml",
        &crd.replace("size: {type: integer, minimum: 1, maximum: 10, default: 3}", "size: {minimum: 1}"),
    );
    kubectl.check(
        "
        kubectl create -f name.yaml
        kubectl create -f storage.yaml 2>&1 | sed -E 's/Invalid value: .[{].*[}].:/Invalid value: <versions>:/'
        kubectl create -f schema.yaml
        kubectl create -f structural.yaml
        ",
        expect![[r#"
            $ kubectl create -f name.yaml
            ! The CustomResourceDefinition "gadget.wrongcrd.example.com" is invalid: metadata.name: Invalid value: "gadget.wrongcrd.example.com": must be spec.names.plural+"."+spec.group
            exit 1
            $ kubectl create -f storage.yaml 2>&1 | sed -E 's/Invalid value: .[{].*[}].:/Invalid value: <versions>:/'
            The CustomResourceDefinition "gadgets.wrongcrd.example.com" is invalid:
            * spec.versions: Invalid value: <versions>: must have exactly one version marked as storage version
            * status.storedVersions: Invalid value: ["v1"]: must have the storage version v1beta1
            $ kubectl create -f schema.yaml
            ! The CustomResourceDefinition "gadgets.wrongcrd.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default: Invalid value: 30:  in body should be less than or equal to 10
            exit 1
            $ kubectl create -f structural.yaml
            ! The CustomResourceDefinition "gadgets.wrongcrd.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type: Required value: must not be empty for specified object fields
            exit 1
        "#]],
    );
}

#[test]
fn deleting_a_definition_deletes_its_objects() {
    let Some(kubectl) = with_crd("crdgone") else { return };
    kubectl.run("kubectl create -f red.yaml -f blue.yaml");
    let mut watch =
        kubectl.follow("kubectl get gadgets.crdgone.example.com -w --output-watch-events -o name");
    watch.lines(2);
    kubectl.check(
        "
        kubectl delete crd gadgets.crdgone.example.com
        kubectl get gadgets.crdgone.example.com
        kubectl get --raw /apis/crdgone.example.com/v1
        ",
        expect![[r#"
            $ kubectl delete crd gadgets.crdgone.example.com
            customresourcedefinition.apiextensions.k8s.io "gadgets.crdgone.example.com" deleted
            $ kubectl get gadgets.crdgone.example.com
            ! error: the server doesn't have a resource type "gadgets"
            exit 1
            $ kubectl get --raw /apis/crdgone.example.com/v1
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1
        "#]],
    );
    let gone = watch.lines(2);
    let mut gone: Vec<&str> = gone.lines().collect();
    gone.sort_unstable();
    expect![[r#"
        gadget.crdgone.example.com/blue
        gadget.crdgone.example.com/red
    "#]]
    .assert_eq(&(gone.join("\n") + "\n"));
    kubectl.run("kubectl create -f crd.yaml");
    kubectl.run("kubectl wait crd/gadgets.crdgone.example.com --for=condition=Established");
    served(&kubectl, "crdgone.example.com");
    kubectl.check(
        "kubectl get gadgets.crdgone.example.com",
        expect![[r#"
        $ kubectl get gadgets.crdgone.example.com
        ! No resources found in crdgone namespace.
    "#]],
    );
}

#[test]
fn names_may_be_taken() {
    let Some(kubectl) = with_crd("taken") else { return };
    kubectl.file(
        "second.yaml",
        &fixtures::crd("taken.example.com")
            .replace("gadgets", "gizmos")
            .replace("singular: gadget", "singular: gizmo"),
    );
    kubectl.run("kubectl create -f second.yaml");
    kubectl.run("kubectl wait crd/gizmos.taken.example.com --for=condition=NamesAccepted=false");
    kubectl.check(
        r#"kubectl get crd gizmos.taken.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'"#,
        expect![[r#"
            $ kubectl get crd gizmos.taken.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
            NamesAccepted=False ListKindConflict: "GadgetList" is already in use
            Established=False NotAccepted: not all names are accepted
        "#]],
    );
}
