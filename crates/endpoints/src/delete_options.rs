//! The options of a DELETE.
//!
//! In: its body, or if there is none its query. Out: the options, and the lease for what they are used for.
//! Never: knows what is deleted.

use forebay_api::Body;
use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Lease, Status, json};
use hyper::body::Incoming;

use crate::audited::NotedBody;
use crate::body_in::{self, Forms, Leased};
use crate::flow_control::Cost;
use crate::handler::{Handler, Head};
use crate::offload;
use crate::status::Failure;

/// The options of a DELETE: its body's, or if there is none the query's. With the lease for what is made of
/// the objects, and for what webhooks say of them.
///
/// - `cost`: what the DELETE costs with a body of so many bytes.
pub async fn delete_options(
    handler: &Handler,
    head: &Head,
    body: Incoming,
    cost: impl FnOnce(usize) -> Cost,
) -> Result<(DeleteOptions, Lease), Failure> {
    let user = head.asker.name();
    let received = handler.receive(head, body, cost).await?;
    if received.bytes.is_empty() {
        let Leased { lease, .. } = received.leased(&handler.rooms, user, None, 0).await?;
        return Ok((DeleteOptions::from_query(&head.query)?, lease));
    }
    // Options are a kind of their own: they have a protobuf form whatever is deleted.
    let content_type = body_in::object_type(&head.headers, Forms::TextAndProtobuf)?;
    let leased = received.leased(&handler.rooms, user, Some(content_type), 0).await?;
    let options = body_in::object(&leased, content_type, "DeleteOptions".into()).await;
    let Leased { bytes, lease, .. } = leased;
    let blamed = |failure| body_in::blamed(failure, &lease, &handler.rooms);
    let (options, on) = (options.map_err(blamed)?, lease.clone());
    let sent = head.sent();
    let read = move || read_delete_options(options, &on, sent);
    let read = offload::done(offload::run_on(bytes.len()), read).await?;
    let options = read.map_err(|status| blamed(status.into()))?;
    Ok((options?, lease))
}

/// Options, or what is wrong with what they say. They are noted, if anything is.
fn read_delete_options(
    body: Body,
    lease: &Lease,
    sent: NotedBody,
) -> Result<Result<DeleteOptions, Status>, Status> {
    let value = match body {
        Body::Unreadable(why) => return Err(*why),
        Body::Value(value) => value,
        Body::Json(text) | Body::Yaml { json: text, .. } => {
            let parsed = json::parse(&text, lease).map_err(|error| {
                Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
            })?;
            parsed.value
        }
    };
    if sent.is_wanted() {
        // No more than all that was sent; it grows while it is written.
        let bytes = 2 * json::written_len_max(&value);
        lease.charge(bytes)?;
        sent.note(&DeleteOptions::noted(&value), lease)?;
        lease.give_back(bytes);
    }
    Ok(DeleteOptions::from_body(&value))
}
