//! What happens to readers whose history is gone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use forebay_rt::Random;
use serde_json::Value;

use crate::common::{Ask, Client, Scratch, Server, names, rv, said};
use crate::protobuf::{PROTOBUF, event};
use crate::{CONFIG_MAPS, config_map, create};

/// More than a cache keeps of what was replaced: 64 MiB.
const WRITES: usize = 100;
const BYTES: usize = 1_040_000;

#[tokio::test]
async fn a_watch_from_before_the_window_is_410_and_an_exact_list_is_read_from_the_store() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&create(&client, "big").await);
    create(&client, "small").await;
    fill(&client).await;

    // The store still has that state, and the rest of its pages.
    let path = format!("{CONFIG_MAPS}?resourceVersion={start}&resourceVersionMatch=Exact");
    let then = client.get(&path).await.expect(200);
    assert_eq!((names(&then), rv(&then)), (vec!["big".to_owned()], start));
    let token = format!(r#"{{"v":"meta.k8s.io/v1","rv":{start},"start":"a\u0000"}}"#);
    let token = URL_SAFE_NO_PAD.encode(token);
    let page = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.expect(200);
    assert_eq!((names(&page), rv(&page)), (vec!["big".to_owned()], start));

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
    // It is known who was told so, and that they list for that.
    client.get(CONFIG_MAPS).await.expect(200);
    let flows = client.get("/debug/forebay/flows").await.expect(200);
    let told = |row: &&Value| row["resource"] == "configmaps" && row["total"]["expired"] == 2;
    let row = flows["clients"].as_array().expect("clients").iter().find(told).expect("a row");
    assert_eq!(row["total"]["causes"]["expired"], 1, "{row}");
}

/// Replaces an object until the cache has to forget.
async fn fill(client: &Client) {
    for number in 0..WRITES {
        let data = noise(number as u64);
        client.put(&format!("{CONFIG_MAPS}/big"), &config_map("big", &data)).await.expect(200);
    }
}

/// Text that does not compress to less than three quarters.
fn noise(seed: u64) -> String {
    let random = Random::seeded(seed);
    let bytes: Vec<u8> = (0..BYTES / 4 * 3 / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}
