//! The readers of the scenario avalanche ask what client-go asks: one script of a server, played to an
//! informer of client-go and to a reader of ours.
//!
//! In: Go, for client-go; without it the tests are left out, loudly. Never: a request compared by when it
//! came, but that none came before the wait that was asked for.
#![allow(clippy::disallowed_methods, reason = "client-go waits on the real clock")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use forebay_bench::arrivals::Arrivals;
use forebay_bench::client::{Protocol, RestConfig};
use forebay_bench::draw::Draw;
use forebay_bench::informers::{Asking, Informers};
use forebay_bench::{pki, reader};
use forebay_clients::needs;
use forebay_scratch::Scratch;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Longest wait for the next request: one of a failing informer may come after half a minute.
const NEXT_MAX: Duration = Duration::from_secs(120);
const INITIAL_END: &str =
    r#"{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}"#;

/// What the server says to a request.
#[derive(Clone, Debug)]
enum Say {
    /// Nothing: the connection is lost.
    Nothing,
    Status(u16, Option<u64>),
    /// A list of nothing, with a token for more.
    List {
        revision: &'static str,
        token: &'static str,
    },
    /// Events, and then the end: of the body, or of the connection in the middle of it.
    Watch(Vec<(&'static str, String)>, End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Lost,
}

/// A request as the server saw it, and how long after the one before.
#[derive(Debug)]
struct Request {
    query: Vec<(String, String)>,
    after: Duration,
}

/// Plays `script` to both, and compares what they ask: all of it and one request more.
///
/// - `waits`: the requests, by their numbers, that may not come sooner than so long after the one before.
async fn check(script: &[Say], waits: &[(usize, Duration)]) {
    let Some(program) = client_go() else { return };
    let dir = Scratch::new();
    pki::write(dir.path()).expect("certificates");
    let theirs = {
        let (port, playing) = serve(dir.path(), script.to_vec()).await;
        let authority = dir.path().join("ca.crt");
        let asking = Asking { port, authority: &authority, token: "t", resource: "configmaps" };
        let _informer = Informers::start(program, 1, &asking).expect("client-go starts");
        playing.await.expect("the script ends")
    };
    let ours = {
        let (port, playing) = serve(dir.path(), script.to_vec()).await;
        let source = reader::Source {
            target: RestConfig::local(port, pki::credentials(dir.path()).expect("certificates")),
            protocol: Protocol::Http1,
            path: "/api/v1/configmaps".into(),
            authorization: None,
        };
        let reading = tokio::spawn(reader::run(
            source,
            Draw::of("clientgo", 0),
            Arc::default(),
            Arc::new(Arrivals::default()),
        ));
        let asked = playing.await.expect("the script ends");
        reading.abort();
        asked
    };
    let queries = |all: &[Request]| all.iter().map(|one| one.query.clone()).collect::<Vec<_>>();
    assert_eq!(queries(&ours), queries(&theirs));
    for (number, least) in waits {
        for (who, asked) in [("client-go", &theirs), ("the reader", &ours)] {
            assert!(asked[*number].after >= *least, "{who}, request {number}: {:?}", asked[*number].after);
        }
    }
}

/// The informers of client-go, built; `None` after a skip was announced.
fn client_go() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    needs::go().then(|| {
        BUILT.get_or_init(|| {
            let binary = needs::cache_dir().expect("a directory").join("bench-client-go");
            let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../faults/go");
            let mut go = Command::new("go");
            go.args(["build", "-mod=readonly", "-trimpath", "-o"]).arg(&binary).arg("./crowd");
            go.current_dir(module).env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0");
            needs::output(&mut go).unwrap_or_else(|why| panic!("{why}"));
            binary
        })
    })
}

/// Serves the script on a port of its own; what was asked, once there is a request beyond it.
async fn serve(dir: &Path, script: Vec<Say>) -> (u16, tokio::task::JoinHandle<Vec<Request>>) {
    let read = |name: &str| std::fs::read(dir.join(name)).expect("it was written");
    let chain = CertificateDer::pem_slice_iter(&read("server.crt")).collect::<Result<_, _>>().expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(&read("server.key")).expect("PEM");
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .expect("a certificate and its key");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let playing = tokio::spawn(async move {
        let mut asked = Vec::new();
        let mut before = Instant::now();
        for say in script.iter().map(Some).chain([None]) {
            let accepted = tokio::time::timeout(NEXT_MAX, listener.accept()).await;
            let (tcp, _) =
                accepted.unwrap_or_else(|_| panic!("nothing after {asked:?}")).expect("a connection");
            let mut tls = acceptor.accept(tcp).await.expect("a handshake");
            asked.push(Request { query: query(&head(&mut tls).await), after: before.elapsed() });
            before = Instant::now();
            if let Some(say) = say {
                tls.write_all(&answer(say)).await.expect("it is taken");
                if !matches!(say, Say::Nothing | Say::Watch(_, End::Lost)) {
                    tls.shutdown().await.expect("it is taken");
                }
            }
        }
        asked
    });
    (port, playing)
}

async fn head(tls: &mut tokio_rustls::server::TlsStream<TcpStream>) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tls.read_u8().await.expect("a request"));
    }
    String::from_utf8(head).expect("text")
}

/// The parameters by name; how long a watch is to take is drawn.
fn query(head: &str) -> Vec<(String, String)> {
    let target = head.split(' ').nth(1).expect("a target");
    let parameters = target.split_once('?').map_or("", |(_, query)| query).split('&');
    let mut all: Vec<(String, String)> = parameters
        .filter_map(|one| one.split_once('='))
        .map(|(name, value)| (name, if name.starts_with("timeout") { "drawn" } else { value }))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    all.sort();
    all
}

fn answer(say: &Say) -> Vec<u8> {
    let whole = |code: u16, more: &str, body: &str| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
        format!("{head}Connection: close\r\n{more}\r\n{body}").into_bytes()
    };
    match say {
        Say::Nothing => Vec::new(),
        Say::Status(code, retry_after) => {
            let more = retry_after.map_or(String::new(), |seconds| format!("Retry-After: {seconds}\r\n"));
            whole(*code, &more, &status(*code))
        }
        Say::List { revision, token } => {
            let metadata = format!(r#"{{"resourceVersion":"{revision}","continue":"{token}"}}"#);
            let kind = r#""kind":"ConfigMapList","apiVersion":"v1""#;
            whole(200, "", &format!(r#"{{{kind},"metadata":{metadata},"items":[]}}"#))
        }
        Say::Watch(events, end) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for (kind, object) in events {
                let object = match *kind {
                    "ERROR" => object.clone(),
                    _ => object.replacen('{', r#"{"kind":"ConfigMap","apiVersion":"v1","#, 1),
                };
                let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
                bytes.extend(format!("{:x}\r\n{line}\r\n", line.len()).into_bytes());
            }
            if *end == End::Whole {
                bytes.extend(b"0\r\n\r\n");
            }
            bytes
        }
    }
}

fn status(code: u16) -> String {
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "Invalid",
    };
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"m","reason":"{reason}","code":{code}}}"#
    )
}

fn object(name: &str, revision: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{revision}"}}}}"#)
}

/// A watch-list of one object that is through at revision 5, and then sees it changed at 6.
fn synced(end: End) -> Say {
    let all = vec![("ADDED", object("a", 4)), ("BOOKMARK", INITIAL_END.into()), ("MODIFIED", object("a", 6))];
    Say::Watch(all, end)
}

fn error(code: u16) -> Say {
    Say::Watch(vec![("ERROR", status(code))], End::Whole)
}

const SECOND: Duration = Duration::from_secs(1);
/// The shortest of client-go's own waits.
const OWN: Duration = Duration::from_millis(800);

#[tokio::test]
async fn a_watch_goes_on_whether_it_ended_or_was_lost() {
    let bookmark = |revision| ("BOOKMARK", format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}}}}"#));
    check(
        &[
            synced(End::Whole),
            Say::Watch(vec![("DELETED", object("a", 8))], End::Lost),
            Say::Watch(vec![bookmark(11)], End::Whole),
        ],
        &[],
    )
    .await;
}

#[tokio::test]
async fn lost_connections_and_refusals_wait_as_they_are_told_and_keep_their_place() {
    check(
        &[
            Say::Nothing,
            synced(End::Lost),
            Say::Nothing,
            Say::Status(429, Some(2)),
            Say::Status(503, Some(1)),
            Say::Status(429, None),
            Say::Watch(vec![("ADDED", object("b", 9))], End::Whole),
            error(429),
        ],
        &[(1, SECOND), (3, SECOND), (4, SECOND * 2), (5, SECOND), (6, OWN), (8, OWN)],
    )
    .await;
}

#[tokio::test]
async fn history_that_is_gone_is_asked_for_from_the_last_revision_and_then_from_none() {
    check(
        &[synced(End::Whole), error(410), Say::Status(410, None), synced(End::Whole), Say::Status(410, None)],
        &[(2, OWN), (5, OWN)],
    )
    .await;
}

#[tokio::test]
async fn a_server_without_watch_lists_is_listed() {
    check(
        &[
            Say::Status(422, None),
            Say::List { revision: "7", token: "t" },
            Say::List { revision: "7", token: "" },
            Say::Status(500, None),
            error(500),
            Say::List { revision: "9", token: "" },
            Say::Watch(vec![("MODIFIED", object("a", 12))], End::Whole),
        ],
        &[(4, OWN)],
    )
    .await;
}

#[tokio::test]
async fn a_watch_that_brings_nothing_and_ends_at_once_is_begun_anew() {
    check(&[synced(End::Whole), Say::Watch(vec![], End::Whole), Say::Watch(vec![], End::Whole)], &[(2, OWN)])
        .await;
}
