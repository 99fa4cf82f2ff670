//! Options of writes.

use serde_json::json;

use crate::common::{Ask, Scratch, Server, causes, names, rv, said, text};
use crate::{CONFIG_MAPS, config_map, create};

const MERGE: &str = "application/merge-patch+json";

#[tokio::test]
async fn a_dry_run_leaves_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let kept = create(&client, "c").await;
    let before = client.get(CONFIG_MAPS).await.expect(200);
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", rv(&before))).await;
    let path = format!("{CONFIG_MAPS}/c");
    let dry = |path: &str| format!("{path}?dryRun=All");
    let created = client.post(&dry(CONFIG_MAPS), &config_map("new", "v")).await.expect(201);
    assert_eq!(text(&created, "/metadata/uid").len(), 36);
    assert_eq!(created["metadata"].get("resourceVersion"), None, "it was never stored");
    let updated = client.put(&dry(&path), &config_map("c", "w")).await.expect(200);
    assert_eq!(text(&updated, "/data/k"), "w");
    let patch = Ask::patch(dry(&path), "application/merge-patch+json", r#"{"data":{"k":"x"}}"#);
    assert_eq!(text(&client.ask(patch).await.expect(200), "/data/k"), "x");
    client.delete(&dry(&path)).await.expect(200);
    client.delete(&dry(CONFIG_MAPS)).await.expect(200);
    assert_eq!(client.get(CONFIG_MAPS).await.expect(200), before);
    // What is refused is refused in a dry run, too.
    let again = client.post(&dry(CONFIG_MAPS), &config_map("c", "v")).await.expect(409);
    assert_eq!(said(&again), r#"409 AlreadyExists: configmaps "c" already exists"#);
    let unknown = client.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("d", "v")).await.expect(422);
    assert!(causes(&unknown).starts_with("FieldValueNotSupported dryRun: "), "{unknown}");
    // The first thing that a watcher hears of is what was done afterwards.
    let last = create(&client, "last").await;
    assert_eq!(watch.event().await.object, last);
    assert_eq!(client.get(&path).await.expect(200), kept);
}

#[tokio::test]
async fn unknown_fields_are_named_dropped_or_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let mut new = config_map("c", "v");
    new["metadata"]["nonsense"] = 1.into();
    let post = |option: &str| {
        let path = format!("{CONFIG_MAPS}?dryRun=All{option}");
        let (client, new) = (client.clone(), new.clone());
        async move { client.post(&path, &new).await }
    };
    let strict = post("&fieldValidation=Strict").await;
    assert_eq!(
        said(&strict.expect(400)),
        r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.nonsense""#
    );
    let ignored = post("&fieldValidation=Ignore").await;
    ignored.expect(201);
    assert!(ignored.warnings().is_empty());
    for option in ["", "&fieldValidation=Warn"] {
        let warned = post(option).await;
        assert!(warned.expect(201)["metadata"].get("nonsense").is_none());
        assert_eq!(warned.warnings(), [r#"299 - "unknown field \"metadata.nonsense\"""#], "{option}");
    }
    let wrong = post("&fieldValidation=Sometimes").await;
    assert!(said(&wrong.expect(422)).contains("fieldValidation"), "{}", wrong.text());
}

#[tokio::test]
async fn names_are_generated() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "job-"}});
    let mut made = Vec::new();
    for _ in 0..5 {
        let object = client.post(CONFIG_MAPS, &new).await.expect(201);
        let name = text(&object, "/metadata/name").to_owned();
        let suffix = name.strip_prefix("job-").unwrap_or_else(|| panic!("{name}"));
        assert_eq!(suffix.len(), 5, "{name}");
        assert!(suffix.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)), "{name}");
        assert_eq!(text(&object, "/metadata/generateName"), "job-");
        made.push(name);
    }
    made.sort();
    assert_eq!(names(&client.get(CONFIG_MAPS).await.expect(200)), made);
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let reply = client.post(CONFIG_MAPS, &nameless).await.expect(422);
    assert_eq!(
        said(&reply),
        r#"422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#
    );
}

#[tokio::test]
async fn what_is_made_of_a_new_object_knows_the_name_that_was_made_for_it() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"},
        "spec": {"template": template}});
    let made = client.post("/apis/batch/v1/namespaces/default/jobs", &job).await.expect(201);
    let name = text(&made, "/metadata/name");
    assert!(name.len() == 7 && name.starts_with("j-"), "{name}");
    assert_eq!(text(&made, "/spec/template/metadata/labels/job-name"), name);
    assert_eq!(text(&made, "/spec/template/metadata/labels/batch.kubernetes.io~1job-name"), name);
    // Nobody says that they own what is not theirs.
    for labels in [json!({}), json!({"kubernetes.io/metadata.name": "wrong"})] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"generateName": "n-", "labels": labels}});
        let made = client.post("/api/v1/namespaces", &namespace).await.expect(201);
        assert_eq!(
            made["metadata"]["labels"],
            json!({"kubernetes.io/metadata.name": made["metadata"]["name"]})
        );
    }
}

#[tokio::test]
async fn what_has_a_name_and_may_have_had_another_is_told_so_when_it_is_taken() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    create(&client, "fixed").await;
    let new =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed", "generateName": "g-"}});
    let taken = client.post(CONFIG_MAPS, &new).await.expect(409);
    let why = "configmaps \"fixed\" already exists, the server was not able to generate a unique name for the object";
    assert_eq!(said(&taken), format!("409 AlreadyExists: {why}"));
    assert_eq!(taken["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn what_only_the_server_says_of_an_object_is_nobodys_when_a_client_posts_it() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "metadata": {
        "name": "restored", "uid": "u", "selfLink": "/x", "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5 }});
    let made = client.post(CONFIG_MAPS, &new).await.expect(201);
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        assert_eq!(made["metadata"].get(member), None, "{member}");
    }
    assert_eq!(text(&made, "/metadata/uid").len(), 36);
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(owned, &json!({"f:data": {".": {}, "f:k": {}}}));
}

#[tokio::test]
async fn patches_are_of_three_kinds() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    create(&client, "c").await;
    let path = format!("{CONFIG_MAPS}/c");
    let rows = [
        (
            "application/json-patch+json",
            r#"[{"op":"add","path":"/data/a","value":"1"}]"#,
            json!({"k": "v", "a": "1"}),
        ),
        (MERGE, r#"{"data":{"a":null,"b":"2"}}"#, json!({"k": "v", "b": "2"})),
        (
            "application/strategic-merge-patch+json",
            r#"{"data":{"$patch":"replace","c":"3"}}"#,
            json!({"c": "3"}),
        ),
    ];
    for (kind, patch, data) in rows {
        let patched = client.ask(Ask::patch(&path, kind, patch)).await.expect(200);
        assert_eq!(patched["data"], data, "{kind}");
    }
    let before = client.get(&path).await.expect(200);
    let nothing = client.ask(Ask::patch(&path, MERGE, r#"{"data":{"c":"3"}}"#)).await.expect(200);
    assert_eq!(nothing, before, "what changes nothing keeps its resourceVersion");
}

#[tokio::test]
async fn what_comes_twice_in_a_patch_is_told_or_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    create(&client, "c").await;
    let patch =
        |query: &str| Ask::patch(format!("{CONFIG_MAPS}/c{query}"), MERGE, r#"{"data":{"z":"1","z":"2"}}"#);
    let told = client.ask(patch("")).await;
    assert_eq!(told.warnings(), [r#"299 - "duplicate field \"data.z\"""#]);
    assert_eq!(text(&told.expect(200), "/data/z"), "2");
    let refused = client.ask(patch("?fieldValidation=Strict")).await.expect(422);
    assert!(causes(&refused).contains(r#"strict decoding error: duplicate field "data.z""#), "{refused}");
}

#[tokio::test]
async fn a_collection_is_deleted_up_to_a_limit() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for name in ["a", "b", "c"] {
        create(&client, name).await;
    }
    client.delete(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(names(&client.get(CONFIG_MAPS).await.expect(200)), ["c"]);
    client.delete(CONFIG_MAPS).await.expect(200);
    assert_eq!(names(&client.get(CONFIG_MAPS).await.expect(200)), Vec::<String>::new());
}

#[tokio::test]
async fn who_deletes_jobs_without_a_word_of_their_pods_is_told_whether_or_not_there_are_any() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for (path, code, told) in [
        (format!("{JOBS}/none"), 404, 1),
        (format!("{JOBS}/none?propagationPolicy=Background"), 404, 0),
        (JOBS.to_owned(), 200, 1),
        (format!("{CONFIG_MAPS}/none"), 404, 0),
    ] {
        let answered = client.delete(&path).await;
        answered.expect(code);
        let of_pods = |warning: &&&str| warning.contains("child pods are preserved by default");
        assert_eq!(answered.warnings().iter().filter(of_pods).count(), told, "{path}");
        assert_eq!(answered.warnings().len(), told, "{path}");
    }
}

#[tokio::test]
async fn a_put_that_would_create_tells_the_version_that_it_was_sent_and_stores_its_own() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = "/api/v1/namespaces/default/services/s";
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "resourceVersion": "1"},
        "spec": {"ports": [{"port": 80}]}});
    let dry = client.put(&format!("{path}?dryRun=All"), &service).await.expect(201);
    assert_eq!(text(&dry, "/metadata/resourceVersion"), "1");
    client.get(path).await.expect(404);
    let stored = client.put(path, &service).await.expect(201);
    assert_ne!(text(&stored, "/metadata/resourceVersion"), "1");
}
