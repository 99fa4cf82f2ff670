//! From a configuration to a `kube::Client` on connections of ours.
//!
//! In: a `kube::Config`, options. Out: a client that anything made for kube-rs takes, and the pool under it.
//! Authentication, headers and the base of the URLs are kube's own layers. Never: asks the server anything by
//! itself. Not here is kube's retrying of answers, whatever the configuration says: what is done about a 429
//! is for whoever asked to decide.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::{Body as RequestBody, ConfigExt as _};
use tower::{BoxError, Layer as _, Service};

use crate::body::Body;
use crate::dial::Dialer;
use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::{Error, limits};

/// What [`connect`] made.
#[derive(Clone)]
pub struct Connected {
    pub client: kube::Client,
    pub pool: Pool,
}

/// Makes a client; a connection is opened with its first request. Must be called within a runtime, in which
/// the connections live until nobody holds the client, the pool or an answer any more.
///
/// # Errors
/// When something of the configuration cannot be used.
pub fn connect(config: kube::Config, options: PoolOptions) -> Result<Connected, Error> {
    let not_usable = |error| Error::Config(Box::new(error));
    let connect_max = config.connect_timeout.unwrap_or(limits::CONNECT_MAX);
    let dialer = Dialer::new(&config, connect_max, options.clock.clone())?;
    let pool = Pool::new(dialer, options, connect_max);
    let service = config.extra_headers_layer().map_err(not_usable)?.layer(Carries(pool.clone()));
    let base = config.base_uri_layer();
    let namespace = config.default_namespace.clone();
    let client = match config.auth_layer().map_err(not_usable)? {
        Some(auth) => kube::Client::new(base.layer(auth.layer(service)), namespace),
        None => kube::Client::new(base.layer(service), namespace),
    };
    Ok(Connected { client, pool })
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// The pool as kube's layers want it.
#[derive(Clone)]
struct Carries(Pool);

impl Service<Request<RequestBody>> for Carries {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    /// Always: who waits for a seat is not to hold up others behind it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let pool = self.0.clone();
        Box::pin(async move { pool.send(request).await.map_err(BoxError::from) })
    }
}
