//! Spans reach a collector over TCP and a Unix socket, and what a collector does not take is lost without
//! holding anybody up.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_rt::{Clock, Duration, Random, Tasks};
use forebay_scratch::Scratch;
use forebay_span_export::{ExportConfig, limits, run};
use forebay_spans::{Collector, RequestSpan, Tracer, TracingConfiguration, otlp};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// Frames that are there.
struct Frames(Vec<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready((!self.0.is_empty()).then(|| Ok(self.0.remove(0))))
    }
}

/// Answers calls on a connection with `status`, and tells what came.
async fn collect(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    status: &'static str,
    told: mpsc::Sender<(String, Bytes)>,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let told = told.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let _ = told.send((path, body)).await;
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(status));
            let empty = Bytes::from_static(&[0, 0, 0, 0, 0]);
            let mut response = Response::new(Frames(vec![Frame::data(empty), Frame::trailers(trailers)]));
            response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
            Ok::<_, Infallible>(response)
        }
    });
    // It ends with its client.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
}

/// One that tells of everything to `collector`, and its tasks.
fn tracer(collector: Collector) -> (Arc<Tracer>, Tasks) {
    let configuration = TracingConfiguration { collector, sampling_rate_per_million: 1_000_000 };
    let (clock, tasks) = (Clock::system(), Tasks::new());
    let (tracer, ended) = Tracer::new(&configuration, clock.clone(), Random::seeded(7));
    let service = ("apiserver".to_owned(), "one".to_owned());
    let config = ExportConfig { collector: configuration.collector, service };
    tasks.spawn_graceful("spans", run(config, tracer.clone(), ended, clock, tasks.clone()));
    (tracer, tasks)
}

/// Ends a span called `name`.
fn tell(tracer: &Arc<Tracer>, name: &str) {
    let started = Clock::system().now();
    let request = RequestSpan { name: name.to_owned(), remote: None, is_trusted: false, started };
    drop(tracer.begin(request).expect("told of"));
}

fn holds(message: &[u8], text: &str) -> bool {
    message.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_full_batch_is_sent_at_once_and_what_is_left_when_the_server_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let place = listener.local_addr().expect("bound").to_string();
    let (told, mut came) = mpsc::channel(8);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        collect(stream, "0", told).await;
    });
    let (tracer, tasks) = tracer(Collector::Tcp(place));
    (0..limits::BATCH_MAX).for_each(|_| tell(&tracer, "GET /first"));
    let (path, message) = timeout(DEADLINE, came.recv()).await.expect("in time").expect("sent");
    assert_eq!(path, otlp::PATH);
    let length = u32::from_be_bytes(*message[1..].first_chunk::<4>().expect("a length")) as usize;
    assert_eq!((message[0], length), (0, message.len() - 5));
    assert!(holds(&message, "GET /first") && holds(&message, "apiserver"));
    tell(&tracer, "GET /last");
    assert!(tasks.stop(DEADLINE).await);
    let (_, message) = timeout(DEADLINE, came.recv()).await.expect("in time").expect("sent");
    assert!(holds(&message, "GET /last") && !holds(&message, "GET /first"));
}

#[tokio::test]
async fn a_collector_on_a_socket_of_this_machine_is_reached() {
    let scratch = Scratch::new();
    let path = scratch.path().join("otel.sock");
    let listener = UnixListener::bind(&path).expect("listens");
    let (told, mut came) = mpsc::channel(8);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        collect(stream, "0", told).await;
    });
    let (tracer, tasks) = tracer(Collector::Unix(path.display().to_string()));
    tell(&tracer, "GET");
    assert!(tasks.stop(DEADLINE).await);
    let sent = timeout(DEADLINE, came.recv()).await.expect("in time").expect("sent");
    assert_eq!(sent.0, otlp::PATH);
}

#[tokio::test]
async fn what_a_collector_refuses_is_sent_once_more_and_forgotten() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let place = listener.local_addr().expect("bound").to_string();
    let (told, mut came) = mpsc::channel(8);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a client");
            tokio::spawn(collect(stream, "14", told.clone()));
        }
    });
    let (tracer, tasks) = tracer(Collector::Tcp(place));
    (0..limits::BATCH_MAX).for_each(|_| tell(&tracer, "GET /first"));
    for _ in 0..2 {
        let (_, message) = timeout(DEADLINE, came.recv()).await.expect("in time").expect("sent");
        assert!(holds(&message, "GET /first"));
    }
    (0..limits::BATCH_MAX).for_each(|_| tell(&tracer, "GET /second"));
    let (_, message) = timeout(DEADLINE, came.recv()).await.expect("in time").expect("sent");
    assert!(holds(&message, "GET /second") && !holds(&message, "GET /first"));
    tasks.stop(DEADLINE).await;
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_is_not_there() {
    // Nobody listens there once it is dropped.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let place = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let (tracer, tasks) = tracer(Collector::Tcp(place));
    (0..10 * limits::BATCH_MAX).for_each(|_| tell(&tracer, "GET"));
    assert!(tracer.dropped() > 0, "the queue is bounded");
    assert!(tasks.stop(DEADLINE).await, "it leaves with the server");
}
