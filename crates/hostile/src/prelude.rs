//! What a row's file needs.

pub(crate) use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) use super::beside::{Beside, WhenAsked};
pub(crate) use super::bodies::*;
pub(crate) use super::http2;
pub(crate) use super::request::*;
pub(crate) use super::tls;
pub(crate) use super::wire::{Heard, Wire};
pub(crate) use super::{Act, Dose, Law, MemoryLimit, Prepared, Row, Said, Scene, Sizes, Stage, Tally, Who};
pub(crate) use forebay_contenders::Error;

/// What would cost more than it may is refused: as malformed, too large or invalid, or for want of room.
pub const REFUSED: &[u16] = &[400, 413, 422, 429];
/// What costs little may be taken as well.
pub const JUDGED: &[u16] = &[200, 201, 400, 413, 422, 429];
/// As the two before, of a server-side apply, which a server may not know.
pub const APPLY_REFUSED: &[u16] = &[400, 413, 415, 422, 429];
pub const APPLY_JUDGED: &[u16] = &[200, 201, 400, 413, 415, 422, 429];
/// Heads that are too long or malformed, or whose client has to be somebody.
pub const HEADS: &[u16] = &[400, 401, 403, 404, 405, 414, 431];

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/hostile/configmaps";
pub const PODS: &str = "/api/v1/namespaces/hostile/pods";
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The beginning of a review in JSON, up to its first member of one's own.
pub const REVIEW: &str = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","#;
/// The same in YAML.
pub const REVIEW_YAML: &str = "apiVersion: authentication.k8s.io/v1\nkind: SelfSubjectReview\n";

/// Makes a definition, and waits until its resource is served.
pub async fn make_served(stage: &Stage, definition: String, plural: &str) -> Result<(), Error> {
    stage.make(Request::post(DEFINITIONS, JSON, definition)).await?;
    let mut wire = stage.of(Who::Admin).connect().await?;
    for _ in 0..500 {
        let heard = wire.ask(&Request::get(custom_path(plural))).await;
        if heard.said == Said::Status(200) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Error::Answer { what: format!("{plural} after 10 s"), answer: "not served".into() })
}

pub fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Makes a namespace; the path of its ConfigMaps.
pub async fn namespace_of(stage: &Stage, name: &str) -> Result<String, Error> {
    let object = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    stage.make(Request::post("/api/v1/namespaces", JSON, object)).await?;
    Ok(config_maps(name))
}

/// Sends a review whose body is `chunks`, of which nothing is checked.
pub async fn send_chunked(stage: &Stage, chunks: &[u8]) -> Result<Heard, Error> {
    let mut wire = stage.connect().await?;
    let token = wire.token.unwrap_or_default();
    let head = format!(
        "POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    Ok(wire.exchange(&[head.as_bytes(), chunks].concat()).await)
}

/// A watch over WebSocket, and what was said when it was asked for.
pub async fn upgraded(stage: &Stage) -> Result<(Wire, Said), Error> {
    let mut wire = stage.connect().await?;
    let head = format!(
        "GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    wire.write(head.as_bytes()).await;
    let said = wire.hear_head().await.said;
    Ok((wire, said))
}

/// `count` LISTs of `path` on one connection, which has no window to take them.
pub async fn lists_that_nobody_takes(stage: &Stage, path: &str, count: usize) -> Result<Tally, Error> {
    let mut http2 = stage.silent_http2().await?;
    http2.begin_with(&[(http2::WINDOW, 0)]).await;
    let streams: Vec<u8> = (0..count).flat_map(|index| http2.get(http2::stream(index), path)).collect();
    http2.write(&streams).await;
    tokio::time::sleep(stage.limit(Duration::from_secs(5))).await;
    Ok(http2.hear(count, stage.patience()).await)
}

/// An administrator who comes now, and comes again for a while, as clients do who are not let in.
pub async fn let_in(stage: &Stage) -> Tally {
    let admin = stage.of(Who::Admin);
    let mut heard = Heard::none();
    for _ in 0..20 {
        let request = Request::get(CONFIG_MAPS);
        if let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_secs(2), admin.ask(&request)).await {
            heard = answer;
        }
        if heard.said == Said::Status(200) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    heard.into()
}

/// How many of `wires` the server has not ended.
pub async fn count_open(wires: &mut [Wire]) -> usize {
    let mut open = 0;
    for wire in wires {
        open += usize::from(wire.end_within(Duration::from_millis(1)).await == Said::Open);
    }
    open
}

/// Whether the server ends `tcp` within `patience`; what it says before is dropped.
pub async fn end_of(mut tcp: TcpStream, patience: Duration) -> Said {
    let mut dropped = [0; 4_096];
    let ended = async { while tcp.read(&mut dropped).await.is_ok_and(|read| read > 0) {} };
    if tokio::time::timeout(patience, ended).await.is_ok() { Said::Closed } else { Said::Open }
}

/// Which of `all` the server ends within `full`, which is longer than its limit. At size 10 there is no time
/// for that: those who would wait longer leave, which counts as closed.
pub async fn wait_for_ends(stage: &Stage, all: Vec<TcpStream>, full: Duration) -> Result<Tally, Error> {
    let mut waiting = JoinSet::new();
    for tcp in all {
        waiting.spawn(end_of(tcp, stage.limit(full)));
    }
    let mut tally = Tally::default();
    while let Some(said) = waiting.join_next().await {
        let said = said.map_err(|e| Error::Connection(e.to_string()))?;
        tally.add(if stage.dose == Dose::Ten { Said::Closed } else { said });
    }
    Ok(tally)
}

/// Shows a certificate of one's own with `further` ones behind it, and asks for something that is
/// everybody's.
pub async fn show_chain(stage: &Stage, further: Vec<Vec<u8>>) -> Result<Tally, Error> {
    let chain = tls::own_chain(further.into_iter().map(Into::into).collect())?;
    let config = tls::showing(&stage.tls(tls::HTTP1), tls::HTTP1, Some(chain));
    let io = stage.tls_over(stage.tcp().await?, config).await?;
    let mut wire = Wire::new(io, stage.host(), None);
    Ok(wire.ask(&Request::get("/livez")).await.into())
}

/// Sends `count` records of one's own making behind a handshake.
pub async fn send_records(
    stage: &Stage,
    count: usize,
    kind: rustls::ContentType,
    content: &[u8],
) -> Result<Tally, Error> {
    let mut config = stage.tls(tls::HTTP1);
    config.enable_secret_extraction = true;
    let stream = stage.tls_over(stage.tcp().await?, config).await?;
    let mut records = tls::Records::after(stream)?;
    pour_records(&mut records, stage, count, kind, content).await?;
    Ok(Tally::of(end_of(records.tcp, stage.patience()).await, ""))
}

/// Likewise, on what there is, unless the server takes no more.
pub async fn pour_records(
    records: &mut tls::Records,
    stage: &Stage,
    count: usize,
    kind: rustls::ContentType,
    content: &[u8],
) -> Result<(), Error> {
    for _ in 0..count.div_ceil(100) {
        let mut many = Vec::new();
        for _ in 0..100 {
            many.extend(records.record(kind, content)?);
        }
        let written = tokio::time::timeout(stage.push(), records.tcp.write_all(&many)).await;
        if !written.is_ok_and(|written| written.is_ok()) {
            break;
        }
    }
    Ok(())
}
