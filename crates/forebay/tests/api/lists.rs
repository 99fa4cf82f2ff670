//! LIST: pages, selectors, resourceVersions.

use serde_json::json;

use crate::common::{Scratch, Server, names, rv, said, text};
use crate::{CONFIG_MAPS, config_map, create};

#[tokio::test]
async fn pages_of_a_list_show_one_state() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for number in 10..35 {
        create(&client, &format!("c{number}")).await;
    }
    let whole = client.get(CONFIG_MAPS).await.expect(200);
    let mut path = format!("{CONFIG_MAPS}?limit=10");
    let mut items = Vec::new();
    for (page, remaining) in [(10, Some(15)), (10, Some(5)), (5, None)] {
        let list = client.get(&path).await.expect(200);
        assert_eq!(names(&list).len(), page);
        assert_eq!(rv(&list), rv(&whole), "every page is of one state");
        assert_eq!(list["metadata"]["remainingItemCount"].as_u64(), remaining);
        items.extend(list["items"].as_array().expect("items").clone());
        let token = text(&list, "/metadata/continue");
        assert_eq!(token.is_empty(), remaining.is_none());
        path = format!("{CONFIG_MAPS}?limit=10&continue={token}");
        // What happens between pages is not seen on them.
        client.delete(&format!("{CONFIG_MAPS}/c{}", 34 - page)).await;
        client.post(CONFIG_MAPS, &config_map(&format!("c3{page}"), "new")).await;
        client.put(&format!("{CONFIG_MAPS}/c33"), &config_map("c33", "changed")).await.expect(200);
    }
    assert_eq!(json!(items), whole["items"]);
    let now = client.get(CONFIG_MAPS).await.expect(200);
    assert!(now["items"] != whole["items"] && rv(&now) > rv(&whole));
    let exactly = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={}", rv(&whole));
    assert_eq!(client.get(&exactly).await.expect(200), whole);
}

#[tokio::test]
async fn a_bad_continue_token_is_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let reply = client.get(&format!("{CONFIG_MAPS}?limit=1&continue=nonsense")).await;
    let want = "400 BadRequest: invalid continue token: continue key is not valid: ";
    assert!(said(&reply.expect(400)).starts_with(want), "{}", reply.text());
}

#[tokio::test]
async fn label_selectors_select() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for (name, labels) in [
        ("a", json!({"tier": "web", "env": "prod"})),
        ("b", json!({"tier": "db", "env": "prod"})),
        ("c", json!({"tier": "web"})),
        ("d", json!({})),
    ] {
        let mut new = config_map(name, "v");
        new["metadata"]["labels"] = labels;
        client.post(CONFIG_MAPS, &new).await.expect(201);
    }
    let rows = [
        ("tier=web", "a c"),
        ("tier%3D%3Dweb,env%3Dprod", "a"),
        ("tier!=web", "b d"),
        ("tier+in+(web,db),env", "a b"),
        ("tier+notin+(web)", "b d"),
        ("!tier", "d"),
        ("nothing=here", ""),
    ];
    for (selector, want) in rows {
        let list = client.get(&format!("{CONFIG_MAPS}?labelSelector={selector}")).await.expect(200);
        assert_eq!(names(&list).join(" "), want, "{selector}");
        let paged = client.get(&format!("{CONFIG_MAPS}?labelSelector={selector}&limit=1")).await.expect(200);
        assert_eq!(names(&paged).join(" "), want.split(' ').next().unwrap_or(""), "{selector}");
        assert!(paged["metadata"].get("remainingItemCount").is_none(), "{paged}");
    }
    let reply = client.get(&format!("{CONFIG_MAPS}?labelSelector=a%20b")).await;
    assert!(said(&reply.expect(400)).contains("unable to parse requirement"), "{}", reply.text());
}

#[tokio::test]
async fn field_selectors_select_by_what_the_kind_offers() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for (name, kind) in [("a", "Opaque"), ("b", "example.com/own"), ("c", "example.com/own")] {
        let new = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind});
        client.post(secrets, &new).await.expect(201);
    }
    for (selector, want) in [
        ("type=example.com/own", "b c"),
        ("type!=example.com/own", "a"),
        ("metadata.name=b", "b"),
        ("metadata.name!=b,type=example.com/own", "c"),
        ("metadata.namespace=kube-system", ""),
    ] {
        for path in [secrets, "/api/v1/secrets"] {
            let list = client.get(&format!("{path}?fieldSelector={selector}")).await.expect(200);
            assert_eq!(names(&list).join(" "), want, "{path} {selector}");
        }
    }
    for verb in ["", "&watch=true"] {
        let reply = client.get(&format!("{secrets}?fieldSelector=data.k=v{verb}")).await;
        assert_eq!(said(&reply.expect(400)), "400 BadRequest: field label not supported: data.k");
    }
}

#[tokio::test]
async fn a_resource_version_of_the_future_is_too_large() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let now = rv(&client.get(CONFIG_MAPS).await.expect(200));
    let far = now + 1_000;
    let path = format!("{CONFIG_MAPS}?resourceVersion={far}&resourceVersionMatch=NotOlderThan");
    let reply = client.get(&path).await;
    let status = reply.expect(504);
    assert_eq!(
        said(&status),
        format!("504 Timeout: Timeout: Too large resource version: {far}, current: {now}")
    );
    let want = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    assert_eq!(status["details"], want);
    assert_eq!(reply.header("retry-after"), "1");
}

#[tokio::test]
async fn lists_are_counted_by_what_they_looked_at_and_returned() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for (number, node) in ["a", "b", "a", "c"].iter().enumerate() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": format!("p{number}"), "labels": {"odd": format!("{}", number % 2)}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        });
        client.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    }
    for query in [
        "",
        "?labelSelector=odd=1",
        "?fieldSelector=spec.nodeName=a",
        "?fieldSelector=spec.nodeName%3Da,status.phase=Running",
    ] {
        client.get(&format!("/api/v1/pods{query}")).await.expect(200);
    }
    let text = client.get("/metrics").await;
    let lines = text.text().lines().filter(|line| line.contains(r#"resource="pods""#));
    let counted: Vec<&str> = lines.filter(|line| line.starts_with("apiserver_cache_list_")).collect();
    assert_eq!(
        counted,
        [
            r#"apiserver_cache_list_total{group="",index="",resource="pods"} 2"#,
            r#"apiserver_cache_list_total{group="",index="f:spec.nodeName",resource="pods"} 2"#,
            r#"apiserver_cache_list_fetched_objects_total{group="",index="",resource="pods"} 8"#,
            r#"apiserver_cache_list_fetched_objects_total{group="",index="f:spec.nodeName",resource="pods"} 4"#,
            r#"apiserver_cache_list_returned_objects_total{group="",resource="pods"} 8"#,
        ]
    );
    let lines = text.text().lines().filter(|line| line.contains(r#"resource="pods""#));
    let asked = lines.filter(|line| line.starts_with("etcd_request") && !line.contains("_seconds_bucket"));
    let asked: Vec<&str> = asked.filter(|line| !line.contains("_seconds_sum")).collect();
    // The cache was filled, the pods were written, and no LIST went to the store.
    assert_eq!(
        asked,
        [
            r#"etcd_requests_total{group="",operation="list",resource="pods"} 1"#,
            r#"etcd_requests_total{group="",operation="create",resource="pods"} 4"#,
            r#"etcd_request_errors_total{group="",operation="list",resource="pods"} 0"#,
            r#"etcd_request_errors_total{group="",operation="create",resource="pods"} 0"#,
            r#"etcd_request_duration_seconds_count{group="",operation="list",resource="pods"} 1"#,
            r#"etcd_request_duration_seconds_count{group="",operation="create",resource="pods"} 4"#,
        ]
    );
    for gauge in ["forebay_answer_frames_in_flight", "forebay_answer_bytes_in_flight"] {
        for kind in ["list", "watch"] {
            let line = format!("{gauge}{{kind=\"{kind}\"}} 0\n");
            assert!(text.text().contains(&line), "{line}");
        }
    }
}
