//! Who uses the server: what is put down to whom, and `/debug/forebay/flows`, which shows it.
//!
//! In: a request's head. Out: its [`Usage`]; all of them as JSON or as a table. Never: decides by them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_reads::{Freshness, ListPlan, Planned, Shown};
use forebay_usage::table::{self, TableShape};
use forebay_usage::{ListedAt, ReadBefore, Usage, Who};

use crate::answer::{self, HttpResponse};
use crate::handler::{Handler, Head};
use crate::limits::FLOWS_BYTES;
use crate::metrics::RequestLabels;
use crate::negotiate;
use crate::offload;
use crate::status::{self, Failure};

pub const PATH: &str = "/debug/forebay/flows";

const TYPES: [&str; 2] = ["application/json", "text/plain"];

impl Handler {
    /// What a request takes, now that its asker and its flow are known.
    ///
    /// - `read`: what was read before on its connection.
    pub fn put_down(&self, head: &Head, labels: &RequestLabels, read: &Arc<ReadBefore>) -> Usage {
        let agent = head.headers.get(http::header::USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
        let agent = String::from_utf8_lossy(agent);
        let flow = head.flow.flow();
        let (resource, subresource) = match labels.resource.is_empty() {
            // What is no resource has its path there.
            true => (&*labels.subresource, ""),
            false => (&*labels.resource, &*labels.subresource),
        };
        let who = Who {
            user: head.asker.name(),
            agent: &agent,
            group: &labels.group,
            resource,
            subresource,
            schema: flow.map_or("", |flow| &flow.schema),
            level: flow.map_or("", |flow| &flow.level),
            distinguisher: flow.map_or("", |flow| &flow.distinguisher),
        };
        self.usages.begin(&who, read.clone(), collection(head))
    }
}

/// The collection that a request is about, as one user sees it. Who finds two with one hash fools nobody but
/// those who look at what it does.
fn collection(head: &Head) -> u32 {
    let mut hasher = DefaultHasher::new();
    let selector = |name| head.query.first(name).unwrap_or_default();
    (head.asker.name(), &head.info.path, selector("labelSelector"), selector("fieldSelector"))
        .hash(&mut hasher);
    hasher.finish() as u32
}

/// Which state a list asks for.
pub fn listed_at(planned: &Planned<ListPlan, Shown>) -> ListedAt {
    match planned.freshness() {
        _ if planned.is_continued() => ListedAt::Page,
        Freshness::Latest => ListedAt::Unset,
        Freshness::Any => ListedAt::Zero,
        Freshness::AtLeast(_) => ListedAt::AtLeast,
        Freshness::Exact(_) => ListedAt::Exact,
    }
}

/// # Errors
/// 400 for an option that is none, 406, 429.
pub async fn answer(handler: &Handler, head: &Head) -> Result<HttpResponse, Failure> {
    let named = |name: &str| head.query.first(name).filter(|value| !value.is_empty());
    let layout = TableShape::named(named("sort"), named("window")).map_err(Status::bad_request)?;
    let as_table = match named("output") {
        Some("table") => true,
        Some("json") => false,
        Some(_) => return Err(Status::bad_request("output must be 'table' or 'json'").into()),
        None => {
            let accept = negotiate::accept(&head.headers);
            negotiate::any_of(accept, &TYPES)?;
            negotiate::any_of(accept, &TYPES[..1]).is_err()
        }
    };
    let room = handler.rooms.answers.take(head.asker.name(), FLOWS_BYTES).await;
    let held = room.map_err(|_full| handler.rooms.full())?;
    let usages = handler.usages.clone();
    let (content_type, body) = offload::done(offload::run_on(FLOWS_BYTES), move || {
        let flows = usages.flows();
        match as_table {
            true => ("text/plain; charset=utf-8", table::lines(&flows, layout).join("\n") + "\n"),
            false => (TYPES[0], flows.to_json()),
        }
    })
    .await?;
    let mut response = answer::sized(status::OK, content_type, body.into(), head.takes_gzip());
    answer::set_lease(&mut response, held);
    Ok(response)
}
