//! Test servers as a test uses them: alone, many beside each other, and after their end.
//!
//! Never: a wait without a limit.

use std::net::TcpStream;
use std::time::Duration;

use forebay_testing::{StartError, TestServer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use tokio::task::JoinSet;

/// Longest wait for what takes milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn maps(server: &TestServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

async fn create(maps: &Api<ConfigMap>, name: &str) {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    maps.create(&PostParams::default(), &map).await.expect("created");
}

async fn names(maps: &Api<ConfigMap>) -> Vec<String> {
    let list = maps.list(&ListParams::default()).await.expect("listed");
    list.items.into_iter().filter_map(|map| map.metadata.name).collect()
}

fn address(server: &TestServer) -> String {
    server.url().strip_prefix("https://").expect("a URL").to_owned()
}

#[tokio::test]
async fn a_hundred_at_once_have_a_store_each() {
    let mut running = JoinSet::new();
    for number in 0..100 {
        running.spawn(async move {
            let server = TestServer::start().await.expect("started");
            let maps = maps(&server);
            let name = format!("of-{number}");
            create(&maps, &name).await;
            (server, maps, name)
        });
    }
    let all = tokio::time::timeout(WAIT_MAX * 5, running.join_all()).await.expect("in time");
    assert_eq!(all.len(), 100);
    for (server, maps, name) in &all {
        // Without controllers nobody else writes ConfigMaps.
        assert!(names(maps).await.contains(name), "{}", server.url());
        let others = all.iter().filter(|(_, _, other)| other != name);
        let seen = names(maps).await;
        assert!(others.into_iter().all(|(_, _, other)| !seen.contains(other)), "{seen:?}");
    }
}

#[tokio::test]
async fn stopped_it_is_gone() {
    let server = TestServer::start().await.expect("started");
    let (maps, address) = (maps(&server), address(&server));
    create(&maps, "one").await;
    assert!(TcpStream::connect(&address).is_ok());
    tokio::time::timeout(WAIT_MAX, server.stop()).await.expect("in time");
    assert!(TcpStream::connect(&address).is_err());
    assert!(maps.list(&ListParams::default()).await.is_err());
}

#[tokio::test]
async fn a_client_of_one_server_is_a_stranger_to_another() {
    let (one, other) =
        (TestServer::start().await.expect("started"), TestServer::start().await.expect("started"));
    let mut config = one.config();
    config.cluster_url = other.config().cluster_url;
    let lost: Api<ConfigMap> =
        Api::default_namespaced(kube::Client::try_from(config.clone()).expect("a client"));
    assert!(lost.list(&ListParams::default()).await.is_err(), "its certificate is from another authority");
    config.accept_invalid_certs = true;
    let lost: Api<ConfigMap> = Api::default_namespaced(kube::Client::try_from(config).expect("a client"));
    let refused = lost.list(&ListParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_test_may_pause_its_clock() {
    let server = TestServer::start().await.expect("started");
    let mut config = server.config();
    // A paused clock jumps to the next timeout while the answer is on its way.
    (config.connect_timeout, config.read_timeout, config.write_timeout) = (None, None, None);
    let client = kube::Client::try_from(config).expect("a client");
    create(&Api::default_namespaced(client), "one").await;
}

#[test]
fn a_test_may_block() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(TestServer::start()).expect("started");
    // Nobody runs the tasks of this runtime meanwhile; the server answers all the same.
    let mut stream = TcpStream::connect(address(&server)).expect("connected");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
    std::io::Write::write_all(&mut stream, b"no TLS\r\n\r\n").expect("written");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).expect("an alert, and the end");
}

#[tokio::test]
async fn it_takes_the_flags_of_serve() {
    let server = TestServer::builder().flag("--authorization-mode=RBAC").start().await.expect("started");
    create(&maps(&server), "one").await;
    for (flag, want) in [
        ("--no-such-flag", "unknown flag: --no-such-flag"),
        ("--etcd-servers-overrides=x", "--etcd-servers-overrides is not served yet"),
        ("serve", "unexpected argument: serve"),
    ] {
        let refused = TestServer::builder().flag(flag).start().await;
        let Err(StartError::Server(why)) = refused else { panic!("{flag}: {refused:?}") };
        assert!(why.line().starts_with(want), "{}", why.line());
    }
}

#[tokio::test]
async fn the_kubeconfig_is_for_other_clients() {
    let server = TestServer::start().await.expect("started");
    assert!(
        server.kubeconfig().contains(&format!("server: \"{}\"", server.url())),
        "{}",
        server.kubeconfig()
    );
    assert!(server.kubeconfig().contains("client-key-data: "));
}
