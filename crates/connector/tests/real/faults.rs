//! What is made of a server that is not there, or is another than was thought: by our client and by an
//! ordinary one of kube-rs.
//!
//! In: servers that fail. Out: the fault. Never: a fault without a server, which is a table in the crate.

use crate::server::{Server, Speaks};
use std::sync::Arc;

use forebay_client::reflector::Fault;
use forebay_connector::{Connected, PoolOptions, connect, fault_of};
use forebay_rt::Duration;
use http::Request;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::{Body, ConfigExt as _};

const HTTP2: Speaks = Speaks::Http2(Some(100));

fn ours(config: kube::Config) -> kube::Client {
    connect(config, PoolOptions::default()).expect("it can be used").client
}

fn ordinary(config: kube::Config) -> kube::Client {
    kube::Client::try_from(config).expect("it can be used")
}

async fn get(client: &kube::Client, path: &str) -> Result<Vec<u8>, kube::Error> {
    let answer = client.send(Request::get(path).body(Body::empty()).expect("a request")).await?;
    Ok(answer.into_body().collect_bytes().await?.to_vec())
}

async fn fault(client: kube::Client, path: &str) -> Fault {
    let error = get(&client, path).await.expect_err("it fails");
    fault_of(&error)
}

#[tokio::test]
async fn nobody_listens_and_no_address_and_no_trust_are_told_apart_by_both_clients() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let server = Server::start(HTTP2).await;
    let at = |url: &str| kube::Config::new(url.parse().expect("a URL"));
    let mut refused = at(&format!("https://{address}"));
    let mut unknown = at("https://no-such-host.invalid");
    refused.root_cert = Some(vec![server.certificate.to_vec()]);
    unknown.root_cert = refused.root_cert.clone();
    let mut distrusted = server.config("https");
    distrusted.root_cert = Some(vec![Server::start(HTTP2).await.certificate.to_vec()]);
    let mut misnamed = server.config("https");
    misnamed.tls_server_name = Some("another.name".into());
    let plain = Server::start(Speaks::Plain).await.config("https");
    let clients: [fn(kube::Config) -> kube::Client; 2] = [ours, ordinary];
    for (at, client) in clients.into_iter().enumerate() {
        for (config, expected) in [
            (&refused, Fault::Refused),
            (&unknown, Fault::Dns),
            (&distrusted, Fault::Tls),
            (&misnamed, Fault::Tls),
            (&plain, Fault::Tls),
        ] {
            let client = client(config.clone());
            assert_eq!(fault(client, "/ok").await, expected, "client {at}, {}", config.cluster_url);
        }
    }
}

#[tokio::test]
async fn an_http1_answer_that_ends_too_early_is_told_from_none_by_both_clients() {
    let clients: [fn(kube::Config) -> kube::Client; 2] = [ours, ordinary];
    for (bytes, expected) in [
        (&b""[..], Fault::Reset),
        (b"HTTP/1.1 200 OK\r\ncontent-", Fault::Reset),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", Fault::CutShort),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", Fault::CutShort),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf", Fault::CutShort),
        (b"SSH-2.0-OpenSSH_9.9\r\n", Fault::Other),
    ] {
        for (at, client) in clients.into_iter().enumerate() {
            let server = Server::start(Speaks::PlainBytes(bytes)).await;
            let said = String::from_utf8_lossy(bytes);
            assert_eq!(fault(client(server.config("http")), "/ok").await, expected, "client {at}: {said:?}");
        }
    }
}

#[tokio::test]
async fn faults_of_an_http2_client_of_hyper_are_told_apart_too() {
    for (path, expected) in [
        ("/reset", Fault::StreamReset),
        ("/reset-within", Fault::StreamReset),
        ("/cut", Fault::Reset),
        ("/cut-within", Fault::CutShort),
        ("/stops", Fault::PingLost),
    ] {
        let server = Server::start(HTTP2).await;
        let error = by_hyper(&server, path).await;
        assert_eq!(fault_of(&error), expected, "{path}: {error:?}");
    }
}

/// How a request fails with hyper's own HTTP/2.
async fn by_hyper(server: &Server, path: &str) -> hyper::Error {
    let mut config = server.config("https").rustls_client_config().expect("it can be used");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(server.address).await.expect("it listens");
    let name = "127.0.0.1".try_into().expect("a name");
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("TLS");
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let short = Duration::from_millis(100);
    builder.timer(TokioTimer::new()).keep_alive_interval(short).keep_alive_timeout(10 * short);
    let (mut sender, connection) = builder.handshake(TokioIo::new(tls)).await.expect("HTTP/2");
    let _runs = tokio::spawn(connection);
    let url = format!("https://{}{path}", server.address);
    let request = Request::get(url).body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
    match sender.send_request(request).await {
        Ok(answer) => answer.into_body().collect().await.expect_err("it fails"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_server_that_agrees_to_http2_and_speaks_something_else_is_a_fault_at_once() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.9\r\n", &[0; 64]] {
        let server = Server::start(Speaks::Bytes(bytes)).await;
        assert_eq!(fault(ours(server.config("https")), "/ok").await, Fault::Other, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_waited_for_as_long_as_for_a_connection() {
    let server = Server::start(Speaks::Nothing).await;
    let mut config = server.config("https");
    config.connect_timeout = Some(Duration::from_millis(200));
    let Connected { client, pool } = connect(config, PoolOptions::default()).expect("it can be used");
    let error = get(&client, "/ok").await.expect_err("it fails");
    assert_eq!(fault_of(&error), Fault::TimedOut, "{error:?}");
    assert_eq!(pool.stats(), Default::default());
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_refused_at_once() {
    let server = Server::start(HTTP2).await;
    let mut proxied = server.config("https");
    proxied.proxy_url = Some("socks5://127.0.0.1:1080".parse().expect("a URL"));
    let mut unnamed = server.config("https");
    unnamed.tls_server_name = Some("not a name".into());
    let other = kube::Config::new("ftp://127.0.0.1".parse().expect("a URL"));
    for (config, said) in [(proxied, "socks5://"), (unnamed, "not a name"), (other, "ftp://")] {
        let error = connect(config, PoolOptions::default()).expect_err("it cannot be used").to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_and_says_why_it_does_not() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
    let server = Server::start(HTTP2).await;
    for (answer, expected) in [("200 Connection established", Ok("0")), ("407 No", Err(Fault::Unreachable))] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut config = server.config("https");
        let proxy = format!("http://me:secret@{}", listener.local_addr().expect("an address"));
        config.proxy_url = Some(proxy.parse().expect("a URL"));
        let (to, address) = (server.address, server.address.to_string());
        let proxies = tokio::spawn(async move {
            let (mut inside, _) = listener.accept().await.expect("a client");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(inside.read_u8().await.expect("a head"));
            }
            inside.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.expect("it listens");
            if answer.starts_with('2') {
                let mut outside = tokio::net::TcpStream::connect(to).await.expect("a server");
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            }
            String::from_utf8(head).expect("a text")
        });
        let client = ours(config);
        match (get(&client, "/ok").await, expected) {
            (Ok(body), Ok(expected)) => assert_eq!(String::from_utf8_lossy(&body), expected),
            (Err(error), Err(expected)) => assert_eq!(fault_of(&error), expected, "{error:?}"),
            (came, _) => panic!("{answer}: {came:?}"),
        }
        drop(client);
        let head = proxies.await.expect("no panic");
        assert!(head.starts_with(&format!("CONNECT {address} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
    }
}
