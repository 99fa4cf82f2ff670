//! get -w: what happens, in order, as tables and as documents.

use expect_test::expect;

use super::{fixtures, session};

#[test]
fn watch_sees_each_change_in_order() {
    let Some(kubectl) = session("watch") else { return };
    kubectl.run("kubectl create -f configmap.yaml");
    let selected = "kubectl get cm -l app=web -w --output-watch-events";
    let mut names =
        kubectl.follow("kubectl get cm -l app=web -w -o custom-columns=NAME:.metadata.name,MODE:.data.mode");
    let mut table = kubectl.follow(selected);
    let mut only =
        kubectl.follow("kubectl get cm --watch-only -l app=web --output-watch-events -o name -v=6");
    only.told("watch=true");
    expect![[r#"
        NAME   MODE
        app    fast
    "#]]
    .assert_eq(&names.lines(2));
    expect![[r#"
        EVENT      NAME   DATA   AGE
        ADDED      app    2      <age>
    "#]]
    .assert_eq(&table.lines(2));
    kubectl.check(
        r#"
        kubectl patch cm app --type=merge -p '{"data":{"mode":"slow"}}'
        kubectl create configmap other --from-literal=mode=none
        kubectl label configmap other app=web
        kubectl label configmap app app-
        kubectl label configmap app app=web
        kubectl delete configmap app other
        "#,
        expect![[r#"
            $ kubectl patch cm app --type=merge -p '{"data":{"mode":"slow"}}'
            configmap/app patched
            $ kubectl create configmap other --from-literal=mode=none
            configmap/other created
            $ kubectl label configmap other app=web
            configmap/other labeled
            $ kubectl label configmap app app-
            configmap/app unlabeled
            $ kubectl label configmap app app=web
            configmap/app labeled
            $ kubectl delete configmap app other
            configmap "app" deleted from watch namespace
            configmap "other" deleted from watch namespace
        "#]],
    );
    expect![[r#"
        app    slow
        other   none
        app     slow
        app     slow
        app     slow
        other   none
    "#]]
    .assert_eq(&names.lines(6));
    expect![[r#"
        MODIFIED   app    2      <age>
        ADDED      other   1      <age>
        DELETED    app     2      <age>
        ADDED      app     2      <age>
        DELETED    app     2      <age>
        DELETED    other   1      <age>
    "#]]
    .assert_eq(&table.lines(6));
    expect![[r#"
        configmap/app
        configmap/other
        configmap/app
        configmap/app
        configmap/app
        configmap/other
    "#]]
    .assert_eq(&only.lines(6));
}

#[test]
fn watch_prints_documents() {
    let Some(kubectl) = session("watchdocs") else { return };
    kubectl.run("kubectl create -f configmap.yaml");
    let mut yaml = kubectl.follow("kubectl get cm app -oyaml -w");
    let mut json = kubectl.follow("kubectl get cm app -ojson -w");
    expect![[r#"
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
          name: app
          namespace: watchdocs
          resourceVersion: "<rv>"
          uid: <uid>
    "#]]
    .assert_eq(&yaml.until("  uid: "));
    json.until("\"uid\"");
    kubectl.run(r#"kubectl patch cm app --type=merge -p '{"data":{"mode":"slow"}}'"#);
    expect![[r#"
        ---
        apiVersion: v1
        data:
          mode: slow
          motd: |
            hello
            world
        kind: ConfigMap
        metadata:
          creationTimestamp: "<time>"
          labels:
            app: web
            tier: front
          name: app
          namespace: watchdocs
          resourceVersion: "<rv>"
          uid: <uid>
    "#]]
    .assert_eq(&yaml.until("  uid: "));
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
    expect![[r#"
        EVENT      NAME   COLOR   SIZE   READY   AGE
        ADDED      red    red     3              <age>
    "#]]
    .assert_eq(&all.lines(2));
    expect![[r#"
        gadget.watch.example.com/red
    "#]]
    .assert_eq(&reds.lines(1));
    kubectl.check(
        r#"
        kubectl create -f blue.yaml
        kubectl patch gadgets.watch.example.com blue --type=merge -p '{"spec":{"color":"red"}}'
        kubectl patch gadgets.watch.example.com red --type=merge -p '{"spec":{"color":"green","size":4}}'
        kubectl delete gadgets.watch.example.com red blue
        "#,
        expect![[r#"
            $ kubectl create -f blue.yaml
            gadget.watch.example.com/blue created
            $ kubectl patch gadgets.watch.example.com blue --type=merge -p '{"spec":{"color":"red"}}'
            gadget.watch.example.com/blue patched
            $ kubectl patch gadgets.watch.example.com red --type=merge -p '{"spec":{"color":"green","size":4}}'
            gadget.watch.example.com/red patched
            $ kubectl delete gadgets.watch.example.com red blue
            gadget.watch.example.com "red" deleted from watchcr namespace
            gadget.watch.example.com "blue" deleted from watchcr namespace
        "#]],
    );
    expect![[r#"
        ADDED      blue   blue    3              <age>
        MODIFIED   blue   red     3              <age>
        MODIFIED   red    green   4              <age>
        DELETED    red    green   4              <age>
        DELETED    blue   red     3              <age>
    "#]]
    .assert_eq(&all.lines(5));
    expect![[r#"
        gadget.watch.example.com/blue
        gadget.watch.example.com/red
        gadget.watch.example.com/blue
    "#]]
    .assert_eq(&reds.lines(3));
}
