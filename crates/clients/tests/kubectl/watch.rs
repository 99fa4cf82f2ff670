//! get -w: what happens, in order, as tables and as documents.

use expect_test::expect;

use super::{fixtures, session};

#[test]
fn watch_sees_each_change_in_order() {
    let Some(kubectl) = session("watch") else { return };
    kubectl.run("kubectl create -f configmap.yaml");
    let selected = "kubectl get cm -l app=web -w --output-watch-events";
    let mut names =
        kubectl.follow(&format!("{selected} -o custom-columns=NAME:.metadata.name,MODE:.data.mode"));
    let mut table = kubectl.follow(selected);
    let mut only = kubectl.follow("kubectl get cm --watch-only -l app=web --output-watch-events -o name");
    expect![[""]].assert_eq(&names.lines(2));
    expect![[""]].assert_eq(&table.lines(2));
    kubectl.check(
        r#"
        kubectl patch cm app --type=merge -p '{"data":{"mode":"slow"}}'
        kubectl create configmap other --from-literal=mode=none
        kubectl label configmap other app=web
        kubectl label configmap app app-
        kubectl label configmap app app=web
        kubectl delete configmap app other
        "#,
        expect![[""]],
    );
    expect![[""]].assert_eq(&names.lines(6));
    expect![[""]].assert_eq(&table.lines(6));
    // `--watch-only` begins at an unknown point of the above; its end is certain.
    let only = only.until("configmap/other");
    assert!(only.contains("configmap/other"), "{only}");
}

#[test]
fn watch_prints_documents() {
    let Some(kubectl) = session("watchdocs") else { return };
    kubectl.run("kubectl create -f configmap.yaml");
    let mut yaml = kubectl.follow("kubectl get cm app -oyaml -w");
    let mut json = kubectl.follow("kubectl get cm app -ojson -w");
    expect![[""]].assert_eq(&yaml.until("  uid: "));
    json.until("\"uid\"");
    kubectl.run(r#"kubectl patch cm app --type=merge -p '{"data":{"mode":"slow"}}'"#);
    expect![[""]].assert_eq(&yaml.until("  uid: "));
    json.until("\"mode\": \"slow\"");
}

#[test]
fn a_watch_of_custom_objects_prints_their_columns() {
    let Some(kubectl) = session("watchcr") else { return };
    let group = "watch.example.com";
    kubectl.file("crd.yaml", &fixtures::crd(group));
    kubectl.file("red.yaml", &fixtures::gadget(group, "red", "red"));
    kubectl.file("blue.yaml", &fixtures::gadget(group, "blue", "blue"));
    kubectl.run("kubectl create -f crd.yaml");
    kubectl.run(&format!("kubectl wait crd/gadgets.{group} --for=condition=Established"));
    kubectl.run("kubectl create -f red.yaml");
    let mut all = kubectl.follow(&format!("kubectl get gadgets.{group} -w --output-watch-events"));
    let mut reds = kubectl.follow(&format!(
        "kubectl get gadgets.{group} -w --output-watch-events -o name --field-selector spec.color=red"
    ));
    expect![[""]].assert_eq(&all.lines(2));
    expect![[""]].assert_eq(&reds.lines(1));
    kubectl.check(
        r#"
        kubectl create -f blue.yaml
        kubectl patch gadgets.watch.example.com blue --type=merge -p '{"spec":{"color":"red"}}'
        kubectl patch gadgets.watch.example.com red --type=merge -p '{"spec":{"color":"green","size":4}}'
        kubectl delete gadgets.watch.example.com red blue
        "#,
        expect![[""]],
    );
    expect![[""]].assert_eq(&all.lines(5));
    expect![[""]].assert_eq(&reds.lines(3));
}
