//! Between the version that is written and the one that is stored, where only a webhook converts.
//!
//! In: a write whose objects are in either. Out: the same with what is there, what is stored and what is
//! answered each in its version. Never: asks a webhook where there is none; has a turn while it asks one.

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::Eventual;
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::limits::CONVERSIONS_MAX;
use forebay_catalog::store::{Attempts, Current, Done};

use super::Write;
use super::flow::{Flow, Passed};
use crate::context::Context;

/// Brings what is there into the version that is written. Whoever looks at something else afterwards says so
/// again.
pub(super) async fn show(write: &mut Write<'_>) -> Result<(), Status> {
    let Some(converted) = &write.served().converted else { return Ok(()) };
    let there = write.attempts.as_ref().and_then(Attempts::current).map(|current| current.object.clone());
    let target = write.target;
    write.shown = match there {
        Some(object) => Some(Current { object: converted.shown(&object, target.in_its_name()).await? }),
        None => None,
    };
    Ok(())
}

/// The bytes that are stored for `written`, which is in the version that is written.
pub(super) async fn stored(write: &Write<'_>, written: Bytes) -> Result<Bytes, Status> {
    let target = write.target;
    match &write.served().converted {
        Some(converted) => converted.stored(written, target.in_its_name()).await,
        None => Ok(written),
    }
}

/// What was done, in the version that was written.
pub(super) async fn answered(write: &mut Write<'_>) -> Result<(), Status> {
    let Some(converted) = &write.served().converted else { return Ok(()) };
    if let Some(Done::Put { object } | Done::Deleted { object, .. } | Done::Kept { object }) = &mut write.done
    {
        let target = write.target;
        let shown = converted.shown(object, target.in_its_name()).await;
        *object = shown.map_err(is_done)?;
    }
    Ok(())
}

/// Who is told to come again would do again what is done.
fn is_done(status: Status) -> Status {
    match status.reason {
        Reason::TooManyRequests => Status::internal(status.message),
        _ => status,
    }
}

/// A stage that may want objects in other versions and does not wait: it is passed again once they are there.
pub(super) fn until_known<'a>(
    write: &'a mut Write<'_>,
    context: &'a Arc<Context>,
    stage: fn(&mut Write<'_>, &Context) -> Result<(), Status>,
) -> Passed<'a> {
    let Some(converted) = &write.target.served.converted else {
        return Eventual::Now(stage(write, context).map(|()| Flow::Next));
    };
    Eventual::later(async move {
        // Each time it gets further.
        for _ in 0..=CONVERSIONS_MAX {
            let passed = stage(write, context);
            let wanted = write.conversions.take_wanted();
            if wanted.is_empty() {
                return passed.map(|()| Flow::Next);
            }
            for (object, api_version) in wanted {
                let asked = converted.convert(object.clone(), &api_version, write.target.in_its_name());
                let made = asked.await?;
                write.conversions.know(object, api_version, made);
            }
        }
        Err(Status::internal("its fields are owned in too many versions"))
    })
}
