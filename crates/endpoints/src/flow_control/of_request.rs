//! What a request's head keeps of its flow: which one it is in, and what became of its turn.
//!
//! In: who asks for what. Out: a turn, or a failure; headers. One turn a request, whoever asks first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Attributes;
use forebay_flow::{Flow, Rejection, explained};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

use super::control::FlowControl;
use super::explain::{Classified, in_short, refused};
use super::price::Cost;
use super::ticket::Ticket;
use crate::status::Failure;

/// Nothing before it is known who asks, and where flow control is off.
#[derive(Default)]
pub struct OfRequest {
    classified: Option<Classified>,
    had: Mutex<Had>,
}

#[derive(Default)]
enum Had {
    #[default]
    Nothing,
    Turn(Arc<Ticket>),
    Refused(Box<Rejection>),
}

impl OfRequest {
    /// Of a request, now that it is known who asks.
    pub fn classify(control: Option<&FlowControl>, asked: &Attributes<'_>) -> OfRequest {
        OfRequest { classified: control.map(|control| control.classify(asked)), had: Mutex::default() }
    }

    /// Waits for its turn, unless it had it. Cancel-safe.
    ///
    /// # Errors
    /// 429, with a slot to come back in, and why.
    pub async fn begin(
        &self,
        control: &FlowControl,
        (asked, path): (&Attributes<'_>, &str),
        cost: Cost,
    ) -> Result<(), Failure> {
        let Some(classified) = self.classified.as_ref().filter(|_| self.ticket().is_none()) else {
            return Ok(());
        };
        let (had, answered) = match control.turn(&classified.flow, cost, asked, path).await {
            Ok(ticket) => (Had::Turn(ticket), Ok(())),
            Err(rejection) => {
                let failure = refused(&rejection);
                (Had::Refused(rejection), Err(failure))
            }
        };
        *self.had() = had;
        answered
    }

    /// The flow that it is in.
    pub fn flow(&self) -> Option<&Flow> {
        self.classified.as_ref().map(|classified| &classified.flow)
    }

    /// Its turn, if it had it.
    pub fn ticket(&self) -> Option<Arc<Ticket>> {
        match &*self.had() {
            Had::Turn(ticket) => Some(ticket.clone()),
            Had::Nothing | Had::Refused(_) => None,
        }
    }

    /// Explains a failure for want of a turn or of memory: in its message, and in a header that goes with it.
    pub fn explain(&self, failure: &mut Failure) -> Option<(HeaderName, HeaderValue)> {
        let flow = &self.classified.as_ref()?.flow;
        let price = match &*self.had() {
            Had::Refused(refused) => return in_short(flow, Some(refused.price), refused.reason.as_str()),
            _ if !failure.is_for_want_of_memory() => return None,
            Had::Turn(ticket) => Some(ticket.price),
            Had::Nothing => None,
        };
        let why = explained(flow, price, "the server has no memory for it now");
        failure.status.message = format!("{} {why}", failure.status.message);
        in_short(flow, price, "memory")
    }

    /// Tells the client of its flow. Its turn goes with the answer.
    pub fn finish(&self, headers: &mut HeaderMap) -> Option<Arc<Ticket>> {
        if let Some(classified) = &self.classified {
            classified.tell(headers);
        }
        match std::mem::take(&mut *self.had()) {
            Had::Turn(ticket) => Some(ticket),
            Had::Nothing | Had::Refused(_) => None,
        }
    }

    fn had(&self) -> MutexGuard<'_, Had> {
        self.had.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
