//! Ways to what runs behind an object, such as the containers of a pod.
//!
//! In: a request that was let in. Out: an answer on its way. Never: who asks.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::Query;
use http::{HeaderMap, Method};

use crate::backend::RequestBody;
use crate::carried::ProxiedAnswer;

/// A request for a part of an object that something else answers.
#[derive(Clone, Copy)]
pub struct ConnectRequest<'a> {
    /// Of which kind the object is, by its plural.
    pub resource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub subresource: &'a str,
    pub method: &'a Method,
    pub query: &'a Query,
    pub headers: &'a HeaderMap,
    pub is_websocket: bool,
    /// The path that was asked for, and what of it follows the subresource, part by part; without escapes.
    pub path: &'a str,
    pub rest: &'a [String],
    /// As it came, without its `?`.
    pub raw_query: Option<&'a str>,
    /// By which host the client knows this server.
    pub host: &'a str,
    /// Who asks, by name.
    pub user: &'a str,
    /// Who is at the other end of its connection.
    pub client: Option<IpAddr>,
}

/// Knows what runs behind pods, services and nodes.
pub trait Connects: Send + Sync {
    /// Bytes of objects that are looked through to find it: its price, known before it has its turn.
    fn bytes_to_read(&self, asked: &ConnectRequest<'_>) -> usize;

    /// `None`: nothing does.
    fn connect<'a>(
        &'a self,
        asked: ConnectRequest<'a>,
        body: RequestBody,
    ) -> Pin<Box<dyn Future<Output = Result<Option<ProxiedAnswer>, Status>> + Send + 'a>>;
}
