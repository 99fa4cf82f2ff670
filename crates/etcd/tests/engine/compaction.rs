//! Who gives up history, and who knows of it.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_several_servers_one_gives_up_history_and_all_know_where_it_begins() {
    on_every_etcd(gives_up_history_once).await;
}

async fn gives_up_history_once(series: Series) {
    let cluster = Cluster::start_of(series, 1, Security::Plain).expect("starts");
    let period = Duration::from_millis(400);
    let stores: Vec<_> = (0..3).map(|_| open_with(&cluster, TlsFiles::default(), Some(period))).collect();
    let begun = Clock::system().now();
    let mut last = committed(&stores[0], put("/a", Expect::Absent, "0")).await;
    while stores[1].oldest().await.expect("open") < last || last.get() < 20 {
        assert!(Clock::system().now() < begun + WAIT, "history is given up");
        if last.get() < 20 {
            last = committed(&stores[0], put("/a", at(last), "more")).await;
        }
        Clock::system().sleep(period / 10).await;
    }
    let noted = cluster.gateway("kv/range", r#"{"key":"Y29tcGFjdF9yZXZfa2V5"}"#).expect("read");
    let version: u128 = noted["kvs"][0]["version"].as_str().and_then(|v| v.parse().ok()).expect("noted");
    let rounds = (Clock::system().now() - begun).as_millis() / period.as_millis();
    assert!(
        (1..=rounds + 2).contains(&version),
        "{version} compactions in {rounds} periods of three servers"
    );
    assert!(stores[2].oldest().await.expect("open") >= last);
    // Each learns it from its own rounds, without a question.
    for store in &stores {
        while store.oldest_known() < last {
            assert!(Clock::system().now() < begun + 2 * WAIT, "it is known to all who take part");
            Clock::system().sleep(period / 10).await;
        }
    }
}
