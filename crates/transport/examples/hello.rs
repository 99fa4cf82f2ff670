//! A server over HTTPS that says hello, and counts for whoever asks it to.
//!
//! ```text
//! cargo run -p forebay-transport --example hello
//! curl -k https://127.0.0.1:8443/            # hello
//! curl -k https://127.0.0.1:8443/count       # a line a second
//! ```
//!
//! In: an address, if any, as the argument. Out: answers, until Ctrl-C; then who counts is told that it is
//! over.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use forebay_rt::{Clock, Duration, Tasks};
use forebay_transport::{
    Connections, Drain, Exchange, Http2, HttpServer, Reply, ReplyBody as _, ServerTls, Service, WatchSlot,
    listen,
};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;

type Body = UnsyncBoxBody<Bytes, Infallible>;

struct Hello {
    clock: Clock,
    drain: Drain,
}

impl Service for Hello {
    /// Whoever asks is answered.
    type Peer = ();
    type Body = Body;

    fn peer(&self, _: &[CertificateDer<'_>]) {}

    async fn answer(&self, request: Request<Incoming>, exchange: Exchange<'_, ()>) -> Reply<Body> {
        // Nobody is a stranger, who would have to give way.
        exchange.connection.authenticated();
        match request.uri().path() {
            "/count" => Reply::Watch(Response::new(self.count())),
            _ => Reply::Whole(Response::new(Body::whole("hello\n".into()))),
        }
    }
}

impl Hello {
    /// A line a second, until the reader or the server leaves.
    fn count(&self) -> Body {
        let begun = (0_u64, self.drain.watch(None), self.clock.clone());
        let lines = stream::unfold(begun, |(count, mut slot, clock)| async move {
            tokio::select! {
                () = clock.sleep(Duration::from_secs(1)) => {}
                () = turn(&mut slot) => return None,
            }
            Some((Ok(Frame::data(format!("{count}\n").into())), (count + 1, slot, clock)))
        });
        StreamBody::new(lines).boxed_unsync()
    }
}

/// Ready when it is this reader's turn to be told that the server leaves.
async fn turn(slot: &mut WatchSlot) {
    std::future::poll_fn(|cx| slot.poll_turn(cx)).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:8443").parse()?;
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(vec![address.ip().to_string()])?.self_signed(&key)?;
    let (shown, key) = (certificate.pem(), key.serialize_pem());
    let tls =
        ServerTls::new(ring::default_provider(), rustls::ALL_VERSIONS, Http2::Enabled, (&shown, &key), None)?;

    let (clock, tasks) = (Clock::system(), Tasks::new());
    let drain = Drain::new(clock.clone(), Duration::ZERO);
    let server = HttpServer {
        service: Arc::new(Hello { clock: clock.clone(), drain: drain.clone() }),
        tls: Arc::new(tls),
        connections: Connections::new(clock.clone(), 1_000, Arc::default()),
        drain,
        clock,
        streams_max: None,
    };
    let listener = listen(address)?;
    println!("https://{}", listener.local_addr()?);
    let leave = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("leaving, as Ctrl-C would not be heard: {error}");
        }
    };
    server.serve(listener, &tasks, leave).await;
    Ok(())
}
