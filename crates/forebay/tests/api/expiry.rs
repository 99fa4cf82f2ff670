//! What happens to readers whose history is gone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::common::{Ask, Client, Scratch, Server, names, rv, said, text};
use crate::protobuf::{PROTOBUF, event};
use crate::{CONFIG_MAPS, config_map, create};

/// More than a cache keeps of what was replaced: 64 MiB.
const WRITES: usize = 70;
const BYTES: usize = 1_040_000;

#[tokio::test]
async fn history_that_is_gone_is_410() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&create(&client, "big").await);
    create(&client, "small").await;
    fill(&client).await;

    let old = "410 Expired: The resourceVersion for the provided list is too old.";
    let path = format!("{CONFIG_MAPS}?resourceVersion={start}&resourceVersionMatch=Exact");
    assert_eq!(said(&client.get(&path).await.expect(410)), old);

    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}")).await;
    let error = watch.event().await;
    assert_eq!(error.kind, "ERROR");
    let want = format!("410 Expired: too old resource version: {start} (");
    assert!(said(&error.object).starts_with(&want), "{}", error.line);
    watch.end().await;
    let same = Ask::get(format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}")).accept(PROTOBUF);
    let mut frames = client.watch_as(same).await;
    let (kind, status) = event(&mut frames).await;
    assert_eq!((kind.as_str(), status), ("ERROR", error.object));
    frames.end().await;

    // A token as a page at that revision ended with. The one in the refusal goes on with what is there now.
    let token = format!(r#"{{"v":"meta.k8s.io/v1","rv":{start},"start":"big\u0000"}}"#);
    let token = URL_SAFE_NO_PAD.encode(token);
    let refused = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.expect(410);
    assert!(
        said(&refused).starts_with("410 Expired: The provided continue parameter is too old "),
        "{refused}"
    );
    let token = text(&refused, "/metadata/continue");
    let rest = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.expect(200);
    assert_eq!(names(&rest), ["small"]);
    assert!(rv(&rest) > start);
}

/// Replaces an object until the cache has to forget.
async fn fill(client: &Client) {
    for number in 0..WRITES {
        let data = format!("{number}{}", "x".repeat(BYTES));
        client.put(&format!("{CONFIG_MAPS}/big"), &config_map("big", &data)).await.expect(200);
    }
}
