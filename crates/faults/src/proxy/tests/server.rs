//! A small API server: one list, and watches that tell what a test has them tell.
//!
//! In: requests, events. Out: a configuration to reach it by. It ends with its runtime. Never: a Kubernetes
//! of its own.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio_rustls::TlsAcceptor;

use crate::proxy::asked::{RequestInfo, RequestKind};
use crate::proxy::certificates;
use crate::proxy::frames::Serialization;
use crate::proxy::service::AnswerBody;
use crate::proxy::upstream::Upstream;
use crate::proxy::watches::Broken;

/// Events that a watch may be behind.
const BEHIND_MAX: usize = 16;

pub struct Server {
    pub upstream: Upstream,
    events: broadcast::Sender<&'static str>,
}

impl Server {
    pub async fn start() -> Server {
        let certificates = certificates::make("localhost").unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (events, _) = broadcast::channel(BEHIND_MAX);
        let (tls, told) = (TlsAcceptor::from(certificates.server), events.clone());
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (tls, told) = (tls.clone(), told.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let service = service_fn(move |request| {
                        let answer = answered(&request, &told);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let mut config = kube::Config::new(format!("https://localhost:{port}").parse().unwrap());
        let root = CertificateDer::from_pem_slice(certificates.authority.as_bytes()).unwrap();
        config.root_cert = Some(vec![root.to_vec()]);
        let upstream = Upstream::of(&config).unwrap();
        Server { upstream, events }
    }

    /// All watches tell this event.
    pub fn tell(&self, event: &'static str) {
        // Nobody watches: nobody is told.
        let _ = self.events.send(event);
    }
}

fn answered(request: &Request<Incoming>, events: &broadcast::Sender<&'static str>) -> Response<AnswerBody> {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let serialization = Serialization::of(accept);
    let (content_type, body) = match RequestInfo::of(request.method(), request.uri()).kind {
        RequestKind::Watch | RequestKind::WatchList => {
            let watch = Watch::start(serialization, events.subscribe());
            let content_type = match serialization {
                Serialization::Json => "application/json;stream=watch",
                Serialization::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            };
            (content_type, watch.boxed_unsync())
        }
        _ => {
            let list = Full::new(Bytes::from_static(b"{\"kind\":\"ConfigMapList\"}\n"));
            ("application/json", list.map_err(|never| match never {}).boxed_unsync())
        }
    };
    Response::builder().header(CONTENT_TYPE, content_type).body(body).unwrap()
}

struct Watch {
    frames: mpsc::Receiver<Bytes>,
}

impl Watch {
    fn start(serialization: Serialization, mut events: broadcast::Receiver<&'static str>) -> Watch {
        let (to, frames) = mpsc::channel(BEHIND_MAX);
        tokio::spawn(async move {
            for first in ["FIRST", "BOOKMARK"] {
                let _ = to.send(frame(serialization, first)).await;
            }
            while let Ok(event) = events.recv().await {
                if to.send(frame(serialization, event)).await.is_err() {
                    return;
                }
            }
        });
        Watch { frames }
    }
}

impl Body for Watch {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.frames.poll_recv(context).map(|next| next.map(|frame| Ok(Frame::data(frame))))
    }
}

fn frame(serialization: Serialization, event: &str) -> Bytes {
    match serialization {
        Serialization::Json => format!("{{\"type\":\"{event}\",\"object\":{{}}}}\n").into(),
        Serialization::Protobuf => {
            let event = [&[0x0a, event.len() as u8], event.as_bytes()].concat();
            [&(event.len() as u32).to_be_bytes(), &event[..]].concat().into()
        }
    }
}
