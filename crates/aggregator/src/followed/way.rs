//! What carries the requests of who follows a kind, as its server is reached now.
//!
//! In: a path and query. Out: the head of an answer, its body a piece at a time, or what befell it. Never:
//! asks again.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_api::{BoxFuture, KindElsewhere};
use forebay_apimachinery::Caller;
use forebay_client::reflector::{Fault, Refusal};
use forebay_client::wire::StatusFrame;
use forebay_proxy::{Carried, Forwarded, ProxiedAnswer, ProxyError, ProxyRoute, RequestBody};
use forebay_rt::Ear;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};

use crate::aggregator::Aggregator;
use crate::asking::AGENT;
use crate::limits::REFUSAL_BYTES_MAX;

const OF_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const OF_WATCH: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// See the module's doc.
pub trait WayElsewhere: Send {
    /// Asks for a list, or for a watch. Dropped, it ends.
    fn ask(&self, target: String, is_watch: bool) -> BoxFuture<'static, AskedElsewhere>;

    /// The connection of the last request may be dead without anybody having noticed.
    fn renew(&self);

    /// Whether the server is there, as far as is known.
    fn is_there(&self) -> bool;

    /// Hears that it may be there, or not, from now on.
    fn ear(&self) -> Ear;
}

/// The head of an answer, or what it is instead.
pub enum AskedElsewhere {
    Answer(Box<dyn Pieces>),
    Refused(Refusal),
    Failed(Fault),
}

/// A body on its way.
pub trait Pieces: Send {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Why it broke off.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>>;
}

impl Pieces for Carried {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        self.poll_data(cx).map_err(|why| why.to_string())
    }
}

/// The way that clients' requests take.
pub struct OverProxy {
    pub aggregator: Aggregator,
    pub caller: Arc<Caller>,
    pub of: Arc<KindElsewhere>,
}

impl OverProxy {
    fn route(&self) -> Option<Arc<ProxyRoute>> {
        self.aggregator.routes.find(&self.of.group, &self.of.version)
    }
}

impl WayElsewhere for OverProxy {
    fn ask(&self, target: String, is_watch: bool) -> BoxFuture<'static, AskedElsewhere> {
        let (route, caller) = (self.route(), self.caller.clone());
        Box::pin(async move {
            let Some(route) = route else { return AskedElsewhere::Failed(Fault::Refused) };
            asked(&route, &caller, &target, if is_watch { OF_WATCH } else { OF_LIST }).await
        })
    }

    fn renew(&self) {
        if let Some(route) = self.route() {
            route.close_idle();
        }
    }

    fn is_there(&self) -> bool {
        self.route().is_some_and(|route| route.is_available())
    }

    fn ear(&self) -> Ear {
        self.aggregator.changes.ear()
    }
}

/// Asks a server, and waits for the head of its answer for as long as whoever calls.
async fn asked(route: &ProxyRoute, caller: &Caller, target: &str, accept: &'static str) -> AskedElsewhere {
    let Ok(target) = target.parse() else { return AskedElsewhere::Failed(Fault::Other) };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(USER_AGENT, AGENT);
    let user = Some(Arc::from(&*caller.name));
    let forwarded = Forwarded { method: Method::GET, target, headers, client: None, user };
    match route.send(forwarded, RequestBody::Right(Default::default()), caller).await {
        Ok(ProxiedAnswer::Carried(head, carried)) if head.status.is_success() => {
            AskedElsewhere::Answer(Box::new(carried))
        }
        Ok(ProxiedAnswer::Carried(head, carried)) => {
            let text = carried.whole(REFUSAL_BYTES_MAX).await.unwrap_or_default();
            let status = StatusFrame::read(&text).unwrap_or_default();
            AskedElsewhere::Refused(Refusal {
                code: head.status.as_u16(),
                ..status.refusal(Some(&head.headers))
            })
        }
        Ok(_) => AskedElsewhere::Failed(Fault::Other),
        Err(why) => {
            tracing::debug!(%why, "another server does not answer");
            AskedElsewhere::Failed(match why {
                ProxyError::Unavailable => Fault::Refused,
                ProxyError::Unreached(_) => Fault::Unreachable,
                ProxyError::Unusable(_) => Fault::Tls,
                ProxyError::Broken(_) => Fault::Reset,
                ProxyError::Redirected | ProxyError::Full => Fault::Other,
            })
        }
    }
}
