//! The connections: a few, however many streams there are, each to a member that answers.
//!
//! Owns: a [`Lane`] for single keys, one for pages, and [`WATCH_CONNECTIONS`](limits::WATCH_CONNECTIONS) for
//! watches, so that a large page does not stand in a watch's way (etcd-io/etcd#15402). In: endpoints. Out: a
//! [`Connection`], made when it is first asked for, and made again, to the next member, once somebody found
//! fault with it. Never: a retry of a request; who asked decides that.

use std::future::Future;
use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_grpc::chain;
use forebay_rt::{Clock, Instant, Tasks};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::cluster::Cluster;
use crate::error::RequestError;
use crate::grpc::Channel;
use crate::limits;
use crate::messages::{self, StatusResponse, path};
use crate::tls::Tls;
use crate::url::Endpoint;
use crate::version;

/// See the module's doc.
pub(crate) struct Pool {
    endpoints: Vec<Endpoint>,
    tls: Option<Tls>,
    cluster: Arc<Cluster>,
    clock: Clock,
    tasks: Tasks,
    lanes: Vec<Lane>,
    // The member that is tried first.
    preferred: AtomicUsize,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Single keys and everything else that is short.
    Keys,
    /// Pages of ranges.
    Pages,
    /// Watches; the number spreads them.
    Watch(usize),
}

/// One connection to one member.
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    endpoint: usize,
    // Somebody found that the member does not do its part.
    faulty: AtomicBool,
    // As far as is known: by its version, until it says that it has not.
    range_stream: AtomicBool,
}

impl Connection {
    /// Whether the member has RangeStream.
    pub(crate) fn has_range_stream(&self) -> bool {
        self.range_stream.load(Ordering::Acquire)
    }

    /// Notes what `fault` says of what the member can do.
    pub(crate) fn note(&self, fault: &RequestError) {
        if let RequestError::Unimplemented { .. } = fault {
            self.range_stream.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub(crate) fn claim_range_stream(&self) {
        self.range_stream.store(true, Ordering::Release);
    }
}

/// A channel to a member, and its version.
type Member = (Channel, String);

/// Whether a member knows of a leader, without which it carries nothing out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Led {
    Yes,
    No,
}

struct Lane {
    held: Mutex<Held>,
    // One connects at a time.
    turn: Semaphore,
    stream_window: u32,
}

#[derive(Default)]
struct Held {
    connection: Option<Arc<Connection>>,
    // Every member refused; until then nobody tries.
    refused: Option<(Instant, RequestError)>,
}

impl Pool {
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        tls: Option<Tls>,
        cluster: Arc<Cluster>,
        clock: Clock,
        tasks: Tasks,
    ) -> Pool {
        let lane = |stream_window| Lane { held: Mutex::default(), turn: Semaphore::new(1), stream_window };
        let unary = [limits::UNARY_STREAM_WINDOW; 2];
        let windows = unary.into_iter().chain([limits::WATCH_STREAM_WINDOW; limits::WATCH_CONNECTIONS]);
        let lanes = windows.map(lane).collect();
        Pool { endpoints, tls, cluster, clock, tasks, lanes, preferred: AtomicUsize::new(0) }
    }

    /// A connection for `purpose`, made if there is none that works. Cancel-safe.
    ///
    /// # Errors
    /// Why the last member that was tried cannot be used.
    pub(crate) async fn connection(&self, purpose: Use) -> Result<Arc<Connection>, RequestError> {
        let lane = &self.lanes[match purpose {
            Use::Keys => 0,
            Use::Pages => 1,
            Use::Watch(number) => 2 + number % limits::WATCH_CONNECTIONS,
        }];
        if let Some(known) = lane.known(self.clock.now()) {
            return known;
        }
        let closed = |_| RequestError::Unreachable { text: "the store is closed".to_string() };
        let _turn = lane.turn.acquire().await.map_err(closed)?;
        // Another one may have connected while we waited.
        if let Some(known) = lane.known(self.clock.now()) {
            return known;
        }
        let made = self.connect(lane.stream_window).await;
        let mut held = lane.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &made {
            Ok(connection) => *held = Held { connection: Some(connection.clone()), refused: None },
            Err(fault) => {
                let until = self.clock.now() + limits::CONNECT_HOLD;
                *held = Held { connection: None, refused: Some((until, fault.clone())) };
            }
        }
        made
    }

    /// Says that `connection` did `fault`: the next one asks another member if that may help.
    pub(crate) fn blame(&self, connection: &Connection, fault: &RequestError) {
        if fault.is_of_the_member() && !connection.faulty.swap(true, Ordering::AcqRel) {
            let next = (connection.endpoint + 1) % self.endpoints.len();
            self.preferred.store(next, Ordering::Release);
            tracing::warn!(member = %self.endpoints[connection.endpoint], %fault, "going over to another connection to etcd");
        }
    }

    /// Connects to the first member that can be used.
    async fn connect(&self, stream_window: u32) -> Result<Arc<Connection>, RequestError> {
        let (first, count) = (self.preferred.load(Ordering::Acquire), self.endpoints.len());
        let numbers = (0..count).map(|step| (first + step) % count);
        let found = first_led(numbers, |number| self.try_member(number, stream_window)).await?;
        let (number, (channel, version)) = found;
        self.preferred.store(number, Ordering::Release);
        let faulty = AtomicBool::new(false);
        let range_stream = AtomicBool::new(version::has_range_stream(&version));
        Ok(Arc::new(Connection { channel, endpoint: number, faulty, range_stream }))
    }

    /// Connects to one member, in bounded time.
    async fn try_member(&self, number: usize, stream_window: u32) -> Result<(Member, Led), RequestError> {
        let endpoint = &self.endpoints[number];
        let connecting = self.connect_to(endpoint, stream_window);
        let made = tokio::select! {
            made = connecting => made,
            () = self.clock.sleep(limits::CONNECT_WAIT) => Err(RequestError::Unreachable { text: "no answer".to_string() }),
        };
        made.map_err(|fault| {
            tracing::debug!(member = %endpoint, %fault, "a member of etcd cannot be used");
            match fault {
                RequestError::Unreachable { text } => {
                    RequestError::Unreachable { text: format!("{endpoint}: {text}") }
                }
                fault => fault,
            }
        })
    }

    async fn connect_to(
        &self,
        endpoint: &Endpoint,
        stream_window: u32,
    ) -> Result<(Member, Led), RequestError> {
        let unreachable = |error: std::io::Error| RequestError::Unreachable { text: chain(&error) };
        let stream = dial(endpoint).await.map_err(unreachable)?;
        let (channel, ended) = match (&self.tls, endpoint.tls) {
            (Some(tls), true) => {
                let name = ServerName::try_from(endpoint.host.clone())
                    .map_err(|error| RequestError::Unreachable { text: error.to_string() })?;
                let connector = tls.connector().await;
                let stream = connector.connect(name, stream).await.map_err(unreachable)?;
                self.speak(stream, endpoint, stream_window).await?
            }
            _ => self.speak(stream, endpoint, stream_window).await?,
        };
        // The first answer also shows that the certificate is let in.
        let status = match channel.call(path::STATUS, &[]).await {
            Ok(answer) => messages::read_status(answer)?,
            // Whether it lets us read and write is told by the probe.
            Err(RequestError::Denied { .. }) => {
                return Ok(((channel, version::OF_DENIAL.to_string()), Led::Yes));
            }
            // With TLS 1.3 it is judged after the handshake, and who ends the connection then says why.
            Err(_)
                if channel.is_closed()
                    && let Ok(Some(text)) = ended.await =>
            {
                return Err(RequestError::Refused { text: format!("{endpoint}: {text}") });
            }
            Err(fault) => return Err(fault),
        };
        let led = judged(endpoint, &status)?;
        self.cluster.admit(status.header.cluster)?;
        Ok(((channel, status.version), led))
    }

    /// Also what tells, once the connection has ended, whether we were refused.
    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        endpoint: &Endpoint,
        stream_window: u32,
    ) -> Result<(Channel, oneshot::Receiver<Option<String>>), RequestError> {
        let made = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(stream_window)
            .initial_connection_window_size(limits::CONNECTION_WINDOW)
            .keep_alive_interval(limits::PING_PERIOD)
            .keep_alive_timeout(limits::PING_WAIT)
            .handshake(TokioIo::new(stream))
            .await;
        let (send, connection) = made.map_err(|error| RequestError::Unreachable { text: chain(&error) })?;
        let (tell, ended) = oneshot::channel();
        self.tasks.spawn("etcd connection", async move {
            let refusal = connection.await.err().and_then(|error| {
                tracing::debug!(error = chain(&error), "a connection to etcd ended");
                refusal(&error)
            });
            // Most of the time nobody asks.
            let _unasked = tell.send(refusal);
        });
        Ok((Channel::new(send, endpoint.to_string()), ended))
    }
}

impl Lane {
    /// What is known without connecting: a connection that works, or that there is none to be had yet.
    fn known(&self, now: Instant) -> Option<Result<Arc<Connection>, RequestError>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, fault)) = &held.refused {
            return (now < *until).then(|| Err(fault.clone()));
        }
        let usable = |connection: &&Arc<Connection>| {
            !connection.faulty.load(Ordering::Acquire) && !connection.channel.is_closed()
        };
        held.connection.as_ref().filter(usable).cloned().map(Ok)
    }
}

/// The first of the members `numbers` that is led; without one the first that can be used, since one may be
/// about to be elected.
///
/// # Errors
/// Why the last one cannot be used, when none can.
async fn first_led<T, F: Future<Output = Result<(T, Led), RequestError>>>(
    numbers: impl Iterator<Item = usize>,
    connect: impl Fn(usize) -> F,
) -> Result<(usize, T), RequestError> {
    let mut last = RequestError::Unreachable { text: "no member is known".to_string() };
    let mut without = None;
    for number in numbers {
        match connect(number).await {
            Ok((member, Led::Yes)) => return Ok((number, member)),
            Ok((member, Led::No)) => without = without.or(Some((number, member))),
            Err(fault) => last = fault,
        }
    }
    without.ok_or(last)
}

/// Whether the member that says this of itself is led.
///
/// # Errors
/// It cannot be used.
fn judged(endpoint: &Endpoint, status: &StatusResponse) -> Result<Led, RequestError> {
    if !version::is_trusted(&status.version) {
        let version = &status.version;
        let text = format!(
            "{endpoint} is etcd {version}, which announces progress ahead of events; 3.4.31, 3.5.13 or later is needed"
        );
        return Err(RequestError::Untrusted { text });
    }
    if status.is_learner {
        return Err(RequestError::Unreachable {
            text: "it is a learner, which takes no requests yet".to_string(),
        });
    }
    Ok(if status.leader == 0 { Led::No } else { Led::Yes })
}

/// What a member says of who it does not let in.
const REFUSALS: [AlertDescription; 9] = [
    AlertDescription::AccessDenied,
    AlertDescription::BadCertificate,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateRequired,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateUnknown,
    AlertDescription::HandshakeFailure,
    AlertDescription::UnknownCA,
    AlertDescription::UnsupportedCertificate,
];

/// The refusal that ended a connection, if one did. HTTP/2 hands errors on as texts.
fn refusal(ended: &hyper::Error) -> Option<String> {
    let why = chain(ended);
    let texts = REFUSALS.iter().map(|alert| rustls::Error::AlertReceived(*alert).to_string());
    texts.into_iter().find(|text| why.contains(text))
}

async fn dial(endpoint: &Endpoint) -> std::io::Result<TcpStream> {
    let place = (endpoint.host.clone(), endpoint.port);
    // An address needs no thread that looks up names.
    let addresses = match endpoint.host.parse::<std::net::IpAddr>() {
        Ok(address) => vec![(address, endpoint.port).into()],
        Err(_) => {
            let found = forebay_rt::blocking(move || place.to_socket_addrs().map(Vec::from_iter));
            found.await.map_err(std::io::Error::other)??
        }
    };
    let stream = TcpStream::connect(&addresses[..]).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_grpc::proto::Message;

    #[test]
    fn a_learner_is_not_used_and_who_has_no_leader_says_so() {
        let endpoint: Endpoint = "http://a:1".parse().expect("a URL");
        for (version, leader, is_learner, expected) in [
            ("3.6.8", 7, false, "Ok(Yes)"),
            ("3.6.8", 0, false, "Ok(No)"),
            ("3.6.8", 7, true, "Err(Unreachable"),
            ("3.4.30", 7, false, "Err(Untrusted"),
        ] {
            let status =
                Message::default().bytes(2, version.as_bytes()).number(4, leader).flag(10, is_learner);
            let status = messages::read_status(status.finish().into()).expect("a status");
            let judged = format!("{:?}", judged(&endpoint, &status));
            assert!(judged.starts_with(expected), "{judged}, not {expected}");
        }
    }

    #[tokio::test]
    async fn a_member_with_a_leader_is_preferred_and_one_without_is_better_than_none() {
        // What each member is, from the first on: led, without a leader, not there.
        for (members, expected) in [
            ("led", Ok(0)),
            ("gone led", Ok(1)),
            ("without led", Ok(1)),
            ("without gone without", Ok(0)),
            ("gone without gone", Ok(1)),
            ("gone gone", Err("1".to_string())),
            ("", Err("no member is known".to_string())),
        ] {
            let members: Vec<&str> = members.split_whitespace().collect();
            let connect = |number: usize| {
                std::future::ready(match members[number] {
                    "led" => Ok((number, Led::Yes)),
                    "without" => Ok((number, Led::No)),
                    _ => Err(RequestError::Unreachable { text: number.to_string() }),
                })
            };
            let found = first_led(0..members.len(), connect).await;
            let expected = expected.map(|number| (number, number));
            assert_eq!(found, expected.map_err(|text| RequestError::Unreachable { text }), "{members:?}");
        }
    }
}
