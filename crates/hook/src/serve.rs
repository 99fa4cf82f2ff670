//! Requests on connections, one after the other.
//!
//! In: connections. Out: what is asked, noted; answers. Never: a body in chunks, which no API server sends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::answer::written;
use crate::{AskedReview, Shared};

/// What a flood is made of.
static PIECE: [u8; 64 << 10] = [b' '; 64 << 10];

type Io = BufReader<TlsStream<TcpStream>>;

pub async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((tcp, _)) = listener.accept().await {
        // An answer of several pieces does not wait until the first is acknowledged.
        let _ = tcp.set_nodelay(true);
        let (tls, shared) = (tls.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(tcp).await else { return };
            let mut io = BufReader::new(stream);
            // Until one of both has enough.
            while answer(&mut io, &shared).await.is_some() {}
        });
    }
}

/// Answers one request; nothing when the connection is over.
async fn answer(io: &mut Io, shared: &Shared) -> Option<()> {
    let head = head(io).await?;
    let mut body = vec![0; head.length];
    io.read_exact(&mut body).await.ok()?;
    let (path, query) = head.path.split_once('?').unwrap_or((&head.path, ""));
    let (who, name) = path.trim_start_matches('/').split_once('/')?;
    // Of a document nobody says anything.
    let review: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).ok()? };
    let mut answer = shared.answer(name)?;
    let uid = review["request"]["uid"].as_str().unwrap_or_default();
    if let Some(then) = answer["then"].as_str().filter(|_| shared.was_asked_before(name, uid)) {
        answer = shared.answer(then)?;
    }
    shared.note(AskedReview {
        who: who.to_owned(),
        query: query.to_owned(),
        authorization: head.authorization.clone(),
        review: review.clone(),
    });
    if let Some(millis) = answer["delay_ms"].as_u64() {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    if answer["hang"] == true {
        // Until the other side goes.
        let _gone = io.read(&mut [0_u8]).await;
        return None;
    }
    if answer["cut"] == true {
        return None;
    }
    let (told, flood) = (answer["length"].as_u64(), answer["flood"].as_u64());
    let location = answer["location"].as_str().map(|to| format!("Location: {to}\r\n")).unwrap_or_default();
    let location = location.replace("$WHO", who);
    let more: String = answer["head"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (number, body) = written(answer, &review);
    let bytes = flood.unwrap_or(body.len() as u64);
    let length = told.unwrap_or(bytes);
    // Unless it is said otherwise.
    let sort = if more.contains("Content-Type:") { "" } else { "Content-Type: application/json\r\n" };
    let head = format!("HTTP/1.1 {number} As-Told\r\n{location}{more}{sort}Content-Length: {length}\r\n\r\n");
    io.write_all(head.as_bytes()).await.ok()?;
    match flood {
        None => io.write_all(&body).await.ok()?,
        Some(mut left) => {
            while left > 0 {
                let piece = left.min(PIECE.len() as u64);
                io.write_all(&PIECE[..piece as usize]).await.ok()?;
                left -= piece;
            }
        }
    }
    io.flush().await.ok()?;
    // Of a connection on which something else was said than is so nothing can be read any more.
    (length == bytes).then_some(())
}

#[derive(Default)]
struct Head {
    path: String,
    /// Of the body.
    length: usize,
    authorization: String,
}

async fn head(io: &mut Io) -> Option<Head> {
    let mut head = Head::default();
    loop {
        let mut line = String::new();
        if io.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Some(head);
        }
        if head.path.is_empty() {
            head.path = line.split(' ').nth(1)?.to_owned();
        } else if let Some((name, value)) = line.split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.trim().parse().ok()?,
                "authorization" => head.authorization = value.trim().to_owned(),
                _ => {}
            }
        }
    }
}
