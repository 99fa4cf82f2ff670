//! CustomResourceDefinitions and the objects they define.

use expect_test::expect;
use forebay_clients::Session;

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
    Some(session)
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
        expect![[""]],
    );
}

#[test]
fn custom_objects_are_read_and_written() {
    let Some(kubectl) = with_crd("gadgets") else { return };
    kubectl.check(
        r#"
        kubectl apply -f red.yaml -f blue.yaml
        kubectl apply -f red.yaml -f blue.yaml
        kubectl get gd
        kubectl get gadgets.gadgets.example.com -o wide
        kubectl get gadget.v1.gadgets.example.com red -o yaml
        kubectl get gadgets.v1beta1.gadgets.example.com red -o jsonpath='{.apiVersion} {.spec}{"\n"}'
        kubectl get gadgets.v1beta1.gadgets.example.com red
        kubectl get things -o name
        kubectl get all -o name | grep gadget
        kubectl get gd --field-selector spec.color=red -o name
        kubectl get gd --field-selector spec.size=3 -o name
        kubectl patch gd red --type=merge -p '{"spec":{"size":4},"status":{"replicas":9}}'
        kubectl get gd red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
        kubectl patch gd red --subresource=status --type=merge -p '{"spec":{"size":9},"status":{"replicas":1,"selector":"a=b","conditions":[{"type":"Ready","status":"True"}]}}'
        kubectl get gd red -o jsonpath='{.metadata.generation} {.spec} {.status}{"\n"}'
        kubectl get gd red
        kubectl wait gd/red --for=condition=Ready
        kubectl scale gd red --replicas=3
        kubectl get --raw /apis/gadgets.example.com/v1/namespaces/gadgets/gadgets/red/scale
        kubectl patch gd red --type=json -p '[{"op":"replace","path":"/spec/color","value":"green"}]'
        kubectl patch gd red -p '{"spec":{"color":"blue"}}'
        kubectl label gd red a=b
        kubectl edit gd red
        EDITOR='sed -i s/green/blue/' kubectl edit gd red
        kubectl get gd -l a=b
        kubectl delete gd red
        kubectl delete gd --all
        kubectl get gd
        "#,
        expect![[""]],
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
        expect![[""]],
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
        kubectl create -f storage.yaml
        kubectl create -f schema.yaml
        kubectl create -f structural.yaml
        ",
        expect![[""]],
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
        expect![[""]],
    );
    let gone = watch.lines(2);
    let mut gone: Vec<&str> = gone.lines().collect();
    gone.sort_unstable();
    expect![[""]].assert_eq(&(gone.join("\n") + "\n"));
    kubectl.run("kubectl create -f crd.yaml");
    kubectl.run("kubectl wait crd/gadgets.crdgone.example.com --for=condition=Established");
    kubectl.check("kubectl get gadgets.crdgone.example.com", expect![[""]]);
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
        expect![[""]],
    );
}
