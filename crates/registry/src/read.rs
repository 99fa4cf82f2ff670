//! LIST, WATCH and what the DELETE of a collection is about, for somebody in this process, who holds what they like.

use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;

use crate::context::Context;
use crate::delete::Selection;
use crate::frames::{EventForm, status_without_code};
use crate::list::ListBody;
use crate::plan;
use crate::present::Shown;
use crate::request::Target;
use crate::watch::WatchBody;

/// A list, whose body is made as it is read.
///
/// # Errors
/// 400, 410, 422, 429 and 504 of reference §1.
pub(crate) async fn list(
    context: &Arc<Context>,
    target: &Target,
    options: &ListOptions,
    shown: Shown,
) -> Result<ListBody, Status> {
    Ok(plan::plan_list(context, target, options, shown)?.run(()).await?.body)
}

/// The same of a watch.
///
/// # Errors
/// As [`list`]; a 410 comes inside the stream, as kube-apiserver has it.
pub(crate) async fn watch(
    context: &Arc<Context>,
    target: &Target,
    options: &ListOptions,
    shown: EventForm,
    path_form: bool,
) -> Result<WatchBody, Status> {
    let planned = plan::plan_watch(context, target, options, shown, path_form)?;
    Ok(planned.run((), status_without_code).await?.body)
}

/// What a DELETE of a collection is about.
///
/// # Errors
/// 400 and 422 of reference §1.1.
pub(crate) fn selection(
    context: &Context,
    target: &Target,
    options: &ListOptions,
) -> Result<Selection, Status> {
    let store = context.store_of(&target.served)?;
    let (plan, interest) = plan::list(target, &store, options)?;
    Ok(Selection { interest, plan })
}
