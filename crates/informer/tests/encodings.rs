//! Informers that ask for protobuf beside such that ask for JSON: of a server of ours, and of kube-apiserver.
//!
//! In: a server for each test. Out: what both show and tell, held against each other and against the server's
//! own list. Never: a wait without a limit.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_client::wire::{ListItems, ListMeta, MessageItems, Part, StatusFrame};
use forebay_clients::needs::peers_or_skip;
use forebay_clients::{ControlPlane, Implementation};
use forebay_informer::{Encoding, Factory, Informer, Notice, Options, Revision, Subscription, Watched};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// By name.
type State = BTreeMap<String, Value>;

async fn client(server: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default());
    connected.expect("a configuration that can be used").client
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, work)
        .await
        .unwrap_or_else(|_| panic!("{what} did not come in {WAIT_MAX:?}"))
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
    }
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"quoted": "<&> \u{2028} \"é\""}},
        "spec": {"containers": [{
            "name": "app", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "a", "value": ""}],
            "resources": {"limits": {"cpu": "0.5", "memory": "1Gi"}},
            "readinessProbe": {"httpGet": {"port": "http"}},
        }]},
    })
}

/// An informer, who listens to it, and what was told so far.
struct Side {
    informer: Informer<Value>,
    subscription: Subscription<Value>,
    told: State,
    deleted: State,
}

impl Side {
    fn new(client: &Client, encoding: Encoding, resource: &ApiResource) -> Side {
        let factory = Factory::new(client.clone(), Options { encoding, ..Options::default() });
        let watched = Watched::<Value>::of(resource).namespace("here");
        let informer = factory.informer(&watched).expect("no index");
        let subscription = informer.subscribe();
        Side { informer, subscription, told: State::new(), deleted: State::new() }
    }

    async fn listen_to(&mut self, revision: Revision) {
        in_time("what was written", self.informer.wait_for(revision)).await.expect("it is seen");
        while let Some(notice) = self.subscription.try_next() {
            match notice {
                Notice::Added(new) | Notice::Updated { new, .. } => {
                    self.told.insert(new.name().into(), new.typed().expect("JSON").clone());
                }
                Notice::Deleted(last) => {
                    let last = (last.name().to_owned(), last.typed().expect("JSON").clone());
                    self.told.remove(&last.0);
                    self.deleted.insert(last.0, last.1);
                }
                Notice::Synced | Notice::Relisted { .. } | Notice::Resync(_) => {}
                Notice::LetGo { .. } => panic!("it has no limit"),
                Notice::Ended => panic!("it ended"),
            }
        }
    }

    fn shown(&self) -> State {
        let view = self.informer.view().expect("synced");
        view.iter().map(|object| (object.name().to_owned(), object.typed().expect("JSON").clone())).collect()
    }
}

async fn listed(api: &Api<DynamicObject>, kind: &str) -> (Revision, State) {
    let list = api.list(&ListParams::default()).await.expect("a list");
    let revision = list.metadata.resource_version.and_then(|revision| revision.parse().ok());
    let whole = |object: DynamicObject| {
        let mut object = serde_json::to_value(object).expect("JSON");
        (object["apiVersion"], object["kind"]) = ("v1".into(), kind.into());
        (object["metadata"]["name"].as_str().expect("a name").to_owned(), object)
    };
    (revision.and_then(Revision::new).expect("a revision"), list.items.into_iter().map(whole).collect())
}

async fn both_forms_are_kept_alike(server: &ControlPlane) {
    let client = client(server).await;
    let namespaces = Api::all_with(client.clone(), &core("Namespace", "namespaces"));
    create(&namespaces, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"}})).await;
    let resource = core("Pod", "pods");
    let pods: Api<DynamicObject> = Api::namespaced_with(client.clone(), "here", &resource);
    for number in 0..40 {
        create(&pods, pod(&format!("pod-{number:02}"))).await;
    }
    let mut sides =
        [Encoding::Json, Encoding::Protobuf, Encoding::Auto].map(|it| Side::new(&client, it, &resource));
    let (revision, there) = listed(&pods, "Pod").await;
    for side in &mut sides {
        in_time("a state", side.informer.synced()).await.expect("it is not stopped");
        side.listen_to(revision).await;
        assert_eq!(side.told, there);
    }
    let patch = |number: u32| Patch::Merge(json!({"metadata": {"labels": {"round": number.to_string()}}}));
    for number in 0..20 {
        let name = format!("pod-{number:02}");
        pods.patch(&name, &PatchParams::default(), &patch(number)).await.expect("it is patched");
    }
    let deletion = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    for number in 10..30 {
        pods.delete(&format!("pod-{number:02}"), &deletion).await.expect("it is deleted");
    }
    create(&pods, pod("pod-10")).await;
    let (revision, there) = listed(&pods, "Pod").await;
    assert_eq!(there.len(), 21);
    for side in &mut sides {
        side.listen_to(revision).await;
        assert_eq!(side.shown(), there);
        assert_eq!(side.told, there);
        assert_eq!(side.deleted.len(), 20);
    }
    let [json, protobuf, _] = &sides;
    assert_eq!(json.deleted, protobuf.deleted);
    assert_eq!(json.deleted["pod-15"]["metadata"]["labels"]["round"], "15", "its last state");
    let asked = sides.each_ref().map(|side| {
        let (_, stats) = &side.informer.stats()[0];
        assert_eq!((stats.pages_asked, stats.states.len()), (0, 1), "{stats:?}");
        (stats.watch_lists_asked, stats.protobuf_answers)
    });
    // Ours has JSON ready.
    let auto = if server.implementation() == Implementation::Forebay { 0 } else { 1 };
    assert_eq!(asked, [(1, 0), (1, 1), (1, auto)]);
    lists_are_cut_alike(&client).await;
    custom_objects_come_as_json(&client).await;
}

async fn asked(client: &Client, query: &str, accept: &str) -> (Vec<u8>, bool) {
    let request = Request::get(format!("/api/v1/namespaces/here/pods?{query}")).header(ACCEPT, accept);
    let answer = client.send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    let is_protobuf =
        answer.headers()[CONTENT_TYPE].to_str().expect("text").starts_with("application/vnd.kubernetes.prot");
    let body = answer.into_body().collect().await.expect("a body");
    (body.to_bytes().to_vec(), is_protobuf)
}

/// What comes of a list's cutter: who the items are, and the end.
fn cut<O>(
    mut next: impl FnMut() -> Option<Part<O>>,
    named: impl Fn(O) -> (String, String),
) -> (Vec<(String, String)>, ListMeta) {
    let mut items = Vec::new();
    loop {
        match next().expect("the body is all there") {
            Part::Head(meta) => assert!(meta.revision.is_some(), "metadata leads"),
            Part::Item(item) => items.push(named(item)),
            Part::End(meta) => return (items, meta),
            Part::Status(status) => panic!("{status:?}"),
        }
    }
}

/// Pages, and what is said instead of one.
async fn lists_are_cut_alike(client: &Client) {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf, application/json;q=0.9";
    let ((json, _), (protobuf, is_protobuf)) =
        (asked(client, "limit=7", "application/json").await, asked(client, "limit=7", PROTOBUF).await);
    assert!(is_protobuf, "it was asked for first");
    let mut texts = ListItems::new();
    texts.push(&json);
    let mut messages = MessageItems::new();
    for piece in protobuf.chunks(100) {
        messages.push(piece);
    }
    let (want, want_meta) = cut(
        || texts.next_part().expect("a list"),
        |it| (it.name().into_owned(), it.resource_version().into_owned()),
    );
    let (got, meta) = cut(
        || messages.next_part().expect("a list"),
        |it| (it.name().to_owned(), it.resource_version().to_owned()),
    );
    assert_eq!((want.len(), &got), (7, &want));
    let gist = |meta: &ListMeta| {
        (meta.kind.clone(), meta.api_version.clone(), meta.revision.clone(), meta.remaining)
    };
    assert_eq!(gist(&meta), gist(&want_meta));
    assert!(meta.next.is_some() && want_meta.next.is_some());
    let (refusal, is_protobuf) = asked(client, "limit=7&continue=nonsense", PROTOBUF).await;
    assert!(is_protobuf);
    let status = StatusFrame::read(&refusal).expect("a Status");
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
}

/// A custom kind has no protobuf.
async fn custom_objects_come_as_json(client: &Client) {
    let resource = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Thinga".into(),
        plural: "things-a".into(),
    };
    let definitions = ApiResource {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        api_version: "apiextensions.k8s.io/v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
    };
    let made = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things-a.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things-a", "singular": "thinga", "kind": "Thinga"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    create(&Api::all_with(client.clone(), &definitions), made).await;
    let things: Api<DynamicObject> = Api::namespaced_with(client.clone(), "here", &resource);
    let thing: DynamicObject = serde_json::from_value(
        json!({"apiVersion": "example.com/v1", "kind": "Thinga", "metadata": {"name": "one"}, "spec": {"any": [1]}}),
    )
    .expect("an object");
    in_time("the kind is served", async {
        while things.create(&PostParams::default(), &thing).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let side = Side::new(client, Encoding::Protobuf, &resource);
    in_time("a state", side.informer.synced()).await.expect("it is not stopped");
    assert_eq!(side.shown()["one"]["spec"]["any"], json!([1]));
    // A definition is built in, and its schemas are kept as they are.
    let definition =
        Factory::new(client.clone(), Options { encoding: Encoding::Protobuf, ..Options::default() });
    let definition = definition.informer(&Watched::<Value>::of(&definitions)).expect("no index");
    in_time("a state", definition.synced()).await.expect("it is not stopped");
    let held = definition.view().expect("synced").get("", "things-a.example.com").expect("there");
    let versions = held.typed().expect("JSON")["spec"]["versions"].clone();
    assert_eq!(versions[0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(side.informer.stats()[0].1.protobuf_answers, 0, "nobody asked for it");
    assert_eq!(definition.stats()[0].1.protobuf_answers, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_as_protobuf_is_kept_as_what_comes_as_json() {
    let server = ControlPlane::start_as(Implementation::Forebay).unwrap_or_else(|why| panic!("{why}"));
    both_forms_are_kept_alike(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_as_protobuf_from_kube_apiserver_is_kept_as_what_comes_as_json() {
    if !peers_or_skip() {
        return;
    }
    let server = ControlPlane::start_as(Implementation::KubeApiserver).unwrap_or_else(|why| panic!("{why}"));
    both_forms_are_kept_alike(&server).await;
}
