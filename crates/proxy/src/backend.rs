//! The connections to one server: a request takes one of those that wait, or a new one.
//!
//! In: where the server is, a request. Out: its answer as it comes. Never: a second address once one may
//! have seen the request.
//!
//! Owner of what waits: whoever has the lock, for a few lines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_authorities::{CutIn, go_answer_words};
use forebay_rt::{Clock, CutOnDrop, Duration, Instant, Tasks};
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;

use crate::carried::{Carried, ProxiedAnswer, Upgraded};
use crate::dial::{self, Handshake, Sender};
use crate::error::ProxyError;
use crate::limits::{
    ADDRESSES_TRIED_MAX, CONNECT_WAIT, CONNECT_WAIT_WITH_OTHERS, IDLE_MAX, IDLE_WAIT, PASSED_OVER,
    PASSED_OVER_MAX, REQUESTS_MAX, VISITS_MAX,
};
use crate::tls::{self, ClientIdentity, Trust};
use crate::turns::{Turn, Turns};

/// What a request carries: a client's body as it comes, or what this server says by itself, which is mostly
/// nothing.
pub type RequestBody = Either<Incoming, Full<Bytes>>;

/// Where else a server is: asked for where the first address does not connect. `None`: nowhere.
pub type OtherAddresses<'a> = Option<&'a (dyn Fn() -> Vec<Box<str>> + Sync)>;

/// See the module's doc. Cheap to clone; all clones are the same connections.
#[derive(Clone)]
pub struct Upstream(Arc<Inner>);

pub(crate) struct Inner {
    handshake: Option<Handshake>,
    clock: Clock,
    tasks: Tasks,
    _cut: CutOnDrop,
    turns: Turns,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Those that wait, the one that was used last at the end; <= IDLE_MAX.
    idle: Vec<Idle>,
    // When an address did not connect; <= PASSED_OVER_MAX.
    failed: HashMap<Box<str>, Instant>,
}

struct Idle {
    sender: Sender,
    since: Instant,
}

impl Upstream {
    /// - `name`: what its certificate is for.
    ///
    /// # Errors
    /// What cannot be used.
    pub fn new(
        name: &str,
        trust: &Trust,
        own: Option<&ClientIdentity>,
        clock: Clock,
    ) -> Result<Upstream, String> {
        let handshake = Handshake { config: tls::config(trust, own)?, name: server_name(name)? };
        Ok(Upstream::of(Some(handshake), Turns::new(REQUESTS_MAX), clock))
    }

    fn of(handshake: Option<Handshake>, turns: Turns, clock: Clock) -> Upstream {
        let tasks = Tasks::new();
        let cut = tasks.cut_on_drop();
        Upstream(Arc::new(Inner { handshake, clock, _cut: cut, tasks, turns, state: Mutex::default() }))
    }

    /// Sends a request, and waits for the head of its answer for as long as whoever calls. Cancel-safe: the
    /// connection is closed.
    ///
    /// - `user`: whose turn it takes; `None` where this server asks by itself.
    /// - `first`: the address to connect to, and `others` if it does not connect.
    /// - `request`: its URL is a path; it has no header of a connection but those of an upgrade.
    ///
    /// # Errors
    /// [`ProxyError`].
    pub async fn send(
        &self,
        user: Option<Arc<str>>,
        (first, others): (&str, OtherAddresses<'_>),
        request: Request<RequestBody>,
    ) -> Result<ProxiedAnswer, ProxyError> {
        let turn = self.0.turns.take(user).ok_or(ProxyError::Full)?;
        let (mut sender, is_new) = match self.idle() {
            Some(sender) => (sender, false),
            None => (self.connect(first, others).await?, true),
        };
        let mut sent = sender.try_send_request(with_host(request, first)).await;
        if let (Err(failed), false) = (&mut sent, is_new)
            && let Some(request) = failed.take_message()
        {
            // The server had closed a connection that waited: nobody has seen the request.
            sender = self.connect(first, others).await?;
            sent = sender.try_send_request(request).await;
        }
        let answer =
            sent.map_err(|failed| ProxyError::Broken(go_answer_words(failed.error(), CutIn::Head)))?;
        self.carried(answer, sender, turn).await
    }

    async fn carried(
        &self,
        mut answer: Response<Incoming>,
        sender: Sender,
        turn: Turn,
    ) -> Result<ProxiedAnswer, ProxyError> {
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(&mut answer).await;
            let io = upgraded.map_err(|why| ProxyError::Broken(go_answer_words(&why, CutIn::Head)))?;
            let (head, _) = answer.into_parts();
            return Ok(ProxiedAnswer::Upgraded(head, Upgraded::new(TokioIo::new(io), turn, self.clone())));
        }
        let (head, body) = answer.into_parts();
        Ok(ProxiedAnswer::Carried(head, Carried::new(body, sender, turn, self.clone())))
    }

    /// A new connection, to the first address that takes one.
    async fn connect(&self, first: &str, others: OtherAddresses<'_>) -> Result<Sender, ProxyError> {
        let Some(others) = others else { return self.dial(first, CONNECT_WAIT).await };
        if !self.is_passed_over(first) {
            match self.dial(first, CONNECT_WAIT_WITH_OTHERS).await {
                Ok(sender) => return Ok(sender),
                Err(_) => self.failed(first),
            }
        }
        // Where nothing carries packets for addresses of services, their endpoints may be in reach.
        for address in others().into_iter().take(ADDRESSES_TRIED_MAX) {
            if &*address == first || self.is_passed_over(&address) {
                continue;
            }
            match self.dial(&address, CONNECT_WAIT_WITH_OTHERS).await {
                Ok(sender) => return Ok(sender),
                Err(_) => self.failed(&address),
            }
        }
        self.dial(first, CONNECT_WAIT).await
    }

    async fn dial(&self, address: &str, wait: Duration) -> Result<Sender, ProxyError> {
        let (sender, driver) = dial::open(self.0.handshake.as_ref(), address, wait, &self.0.clock).await?;
        self.0.tasks.spawn("connection to an aggregated server", async move {
            // Its request was told what went wrong.
            let _ = driver.with_upgrades().await;
        });
        Ok(sender)
    }

    /// One that waits, wherever it leads: it is the same server.
    fn idle(&self) -> Option<Sender> {
        let now = self.0.clock.now();
        let mut state = self.state();
        state.idle.retain(|idle| !idle.sender.is_closed() && now < idle.since + IDLE_WAIT);
        let at = state.idle.iter().rposition(|idle| idle.sender.is_ready())?;
        Some(state.idle.remove(at).sender)
    }

    /// A connection whose answer was read to its end waits for the next request.
    pub(crate) fn keep(&self, sender: Sender) {
        let since = self.0.clock.now();
        let mut state = self.state();
        if sender.is_closed() {
            return;
        }
        if state.idle.len() >= IDLE_MAX {
            state.idle.remove(0);
        }
        state.idle.push(Idle { sender, since });
    }

    /// Closes the connections that wait.
    pub fn close_idle(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        drop(idle);
    }

    fn is_passed_over(&self, address: &str) -> bool {
        let now = self.0.clock.now();
        self.state().failed.get(address).is_some_and(|at| now < *at + PASSED_OVER)
    }

    fn failed(&self, address: &str) {
        let now = self.0.clock.now();
        let mut state = self.state();
        if state.failed.len() >= PASSED_OVER_MAX {
            state.failed.clear();
        }
        state.failed.insert(address.into(), now);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let name = ServerName::try_from(name.to_owned());
    name.map_err(|_| "tls: the server's name is no name of a host".to_owned())
}

/// Ways to what runs behind objects of clients: each is a connection for one request, to whoever is there.
pub struct Visits {
    turns: Turns,
    clock: Clock,
}

impl Visits {
    pub fn new(clock: Clock) -> Visits {
        Visits { turns: Turns::new(VISITS_MAX), clock }
    }

    /// - `is_encrypted`: by TLS, where nobody needs to vouch for it, as in kube-apiserver.
    ///
    /// # Errors
    /// What cannot be used.
    pub fn at(&self, host: &str, is_encrypted: bool) -> Result<Upstream, String> {
        let handshake = match is_encrypted {
            true => Some(Handshake { config: tls::config(&Trust::Anybody, None)?, name: server_name(host)? }),
            false => None,
        };
        Ok(Upstream::of(handshake, self.turns.clone(), self.clock.clone()))
    }
}

/// Names where it goes, unless that is said.
fn with_host(mut request: Request<RequestBody>, address: &str) -> Request<RequestBody> {
    // An address that was connected to, or is about to be, has no bytes that no header could have.
    if let Ok(host) = http::HeaderValue::from_str(address) {
        request.headers_mut().entry(http::header::HOST).or_insert(host);
    }
    *request.version_mut() = http::Version::HTTP_11;
    request
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::Method;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn whether_a_server_is_there_is_found_out_however_many_requests_clients_have_there() {
        let upstream = Upstream::new("localhost", &Trust::Anybody, None, Clock::system()).expect("a name");
        let users: Vec<Arc<str>> = (0..64).map(|index| format!("user-{index}").into()).collect();
        let turns =
            users.iter().flat_map(|user| std::iter::from_fn(|| upstream.0.turns.take(Some(user.clone()))));
        let _taken: Vec<Turn> = turns.collect();
        let sent = async |user: Option<&str>| {
            let request = Request::new(RequestBody::Right(Full::default()));
            // Nobody listens there.
            upstream.send(user.map(Arc::from), ("127.0.0.1:1", None), request).await.err()
        };
        assert!(matches!(sent(Some("bob")).await, Some(ProxyError::Full)));
        assert!(matches!(sent(None).await, Some(ProxyError::Unreached(_))));
    }

    #[tokio::test]
    async fn who_is_at_one_address_alone_is_tried_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let tried = Arc::<AtomicUsize>::default();
        let counted = tried.clone();
        tokio::spawn(async move {
            // Nobody speaks TLS here.
            while let Ok((tcp, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                drop(tcp);
            }
        });
        let visits = Visits::new(Clock::system());
        let sent = async |others: OtherAddresses<'_>| {
            let upstream = visits.at("127.0.0.1", true).expect("a name");
            let mut request = Request::new(RequestBody::Right(Full::default()));
            *request.method_mut() = Method::GET;
            let sent = upstream.send(None, (&address, others), request).await;
            assert!(matches!(sent.err(), Some(ProxyError::Unreached(_))));
            tried.swap(0, Ordering::Relaxed)
        };
        assert_eq!(sent(None).await, 1);
        let others = || vec![Box::from(address.as_str()), Box::from("127.0.0.1:1")];
        assert_eq!(sent(Some(&others)).await, 2, "once soon, and once at length");
    }
}
