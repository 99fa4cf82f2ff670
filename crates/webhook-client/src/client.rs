//! A call, from its parts to its answer.
//!
//! In: a call. Out: its answer whole, or why there is none. Never: more of an answer than `webhooks`' limits
//! say.

use std::future::Future;
use std::pin::Pin;

use forebay_authorities::{CutIn, go_answer_words};
use forebay_rt::Clock;
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer, WebhookSort};
use http::Uri;

use crate::credentials::CredentialsOfPlugins;
use crate::exchange::{Exchange, exchanged};
use crate::own::{self, OwnAnswer, OwnServer};
use crate::routes::{RouteKey, Routes};
use crate::words;

/// Who carries reviews to webhooks, over connections of its own.
pub struct WebhookClient {
    clock: Clock,
    routes: Routes,
    credentials: CredentialsOfPlugins,
    own: Option<OwnServer>,
}

impl WebhookClient {
    pub fn new(clock: Clock, credentials: CredentialsOfPlugins) -> WebhookClient {
        WebhookClient { routes: Routes::new(clock.clone()), clock, credentials, own: None }
    }

    /// Has calls to the service of this server answered here, by this server as whoever may do everything.
    pub fn beside(self, own: OwnServer) -> WebhookClient {
        WebhookClient { own: Some(own), ..self }
    }

    async fn carry(&self, calling: Calling) -> Result<Answered, NoAnswer> {
        let malformed = |why: http::uri::InvalidUri| NoAnswer::Failed(why.to_string());
        let url: Uri = calling.url.parse().map_err(malformed)?;
        if let Some(own) = self.own.as_ref().filter(|_| own::is_own(&calling.client.destination)) {
            return self.carry_to_itself(own, &calling, &url).await;
        }
        let key = RouteKey {
            client: calling.client.clone(),
            address: calling.address.clone(),
            has_others: calling.has_others,
            sort: calling.sort,
        };
        let (host, port) = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
        let credential = match calling.sort {
            Some(WebhookSort::Mutating) => self.credentials.mutating.of(host, port),
            Some(WebhookSort::Validating) => self.credentials.validating.of(host, port),
            None => None,
        };
        let route = self.routes.route(&key, &url, credential.as_deref()).map_err(NoAnswer::Unusable)?;
        if calling.has_others && self.routes.is_passed_over(&route) {
            return Err(NoAnswer::Unreached("it did not connect a moment ago".to_owned()));
        }
        let authorization = credential.as_ref().and_then(|known| known.authorization.as_deref());
        let way = Exchange { clock: &self.clock, route: &route, url: &url, authorization };
        let (routes, route) = (&self.routes, &*route);
        let send = |request| async move {
            match route.pool.send(request).await {
                Ok(answer) => Ok((answer, ())),
                Err(error) if words::is_unreached(&error) => {
                    routes.failed(route);
                    Err(NoAnswer::Unreached(words::of(&error)))
                }
                Err(error) => Err(NoAnswer::Failed(words::of(&error))),
            }
        };
        exchanged(&way, &calling, send, words::of).await
    }

    /// With no credential, whatever is configured: none leaves this process, and none is needed.
    async fn carry_to_itself(
        &self,
        own: &OwnServer,
        calling: &Calling,
        url: &Uri,
    ) -> Result<Answered, NoAnswer> {
        let (client, sort) = (calling.client.clone(), calling.sort);
        let key = RouteKey { client, address: None, has_others: false, sort };
        let route = self.routes.route(&key, url, None).map_err(NoAnswer::Unusable)?;
        let way = Exchange { clock: &self.clock, route: &route, url, authorization: None };
        let send = |request| async move {
            let OwnAnswer { answer, connection } = own::send(own, request).await.map_err(NoAnswer::Failed)?;
            Ok((answer, connection))
        };
        exchanged(&way, calling, send, |why| go_answer_words(why, CutIn::Body)).await
    }
}

impl Calls for WebhookClient {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        Box::pin(self.carry(calling))
    }
}
