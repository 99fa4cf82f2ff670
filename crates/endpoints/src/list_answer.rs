//! A list's answer: what is made of it, where, and how it is sent.
//!
//! In: a list's body, and the form that the client wants. Out: the answer, whole where the list is short;
//! else pieces, which those share who ask for the same ([`SharedLists`]). Never: reads more ahead than tells
//! which.

use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::accept::Media;
use forebay_pieces::{
    Gzip, InBlocks, ListAnswer, ListContent, ListSource, MadeFor, Member, Pretty, Resumed, SharedLists,
    SourceAnswer, Written, YamlList, read_ahead,
};
use forebay_reads::{Estimate, ListBody, SeenObjects, Weight};
use forebay_transport::limits::CHUNK_BYTES;
use forebay_transport::{BodySource, PiecewiseBody, RunOn, SentBy};

use crate::answer::{self, HttpResponse, Readers};
use crate::flow_control::{ListMeter, ListPieces, MeteredPieces};
use crate::limits::GZIP_BYTES_MIN;
use crate::negotiate::Form;
use crate::offload;
use crate::response::{Content, ResponseBody};
use crate::status::{self, Failure};

/// A list, read as far as needed to know whether it is a long one, and for whom that was done.
///
/// - `weight`: what it may come to; `meter`: measures what it does, from here on all of it.
///
/// # Errors
/// See [`offload::done`].
pub async fn list(
    list: ListBody,
    (form, takes_gzip): (Form, bool),
    (readers, shared): (Readers<'_>, &SharedLists),
    (weight, meter): (Weight, ListMeter),
) -> Result<(HttpResponse, MadeFor), Failure> {
    let begin = async |list| begin(list, (form, takes_gzip), weight, &meter).await;
    if !list.is_shared() {
        let answer = meter.during(begin(list)).await?;
        return Ok((response(metered(answer, meter), readers), MadeFor::This));
    }
    let (answer, made_for) = meter.during(shared.open(list, (form, takes_gzip), begin)).await?;
    let response = match made_for {
        MadeFor::This => response(metered(answer, meter), readers),
        // Pages that are kept are fresh ones, which takes longer; and what is there takes nothing.
        MadeFor::Several | MadeFor::Another => response(answer, readers),
    };
    Ok((response, made_for))
}

/// An answer that is made for one, as far as is known.
fn metered<S: ListPieces>(answer: ListAnswer<S>, meter: ListMeter) -> ListAnswer<MeteredPieces<S>> {
    if let ListContent::Whole(bytes, _) = &answer.content {
        meter.came_to(Duration::ZERO, bytes.len());
    }
    answer.map(|source| MeteredPieces::new(source, meter))
}

/// The answer to `list` by itself.
///
/// # Errors
/// See [`offload::done`].
pub async fn begin(
    list: ListBody,
    (form, takes_gzip): (Form, bool),
    Weight { of: Estimate { objects, bytes, .. }, .. }: Weight,
    meter: &ListMeter,
) -> Result<SourceAnswer, Failure> {
    if form.is_plain_json() && list.is_of_segments() && takes_gzip {
        return of_segments(list, offload::run_on(bytes / objects.max(1)), meter).await;
    }
    let mut source: Box<dyn ListSource> = match (form.media, form.pretty) {
        (Media::Yaml, _) => Box::new(YamlList::new(Written(list))),
        (Media::Json, true) => Box::new(Pretty::new(Written(list))),
        (Media::Json, false) | (Media::Protobuf, _) => Box::new(Written(list)),
    };
    let content_type = form.media.content_type();
    let bytes_max = if takes_gzip { GZIP_BYTES_MIN } else { CHUNK_BYTES };
    let run_on = if form.is_for_people() { offload::run_on(bytes) } else { RunOn::Task };
    let apart = meter.clone();
    let read = move || (apart.apart(run_on, || read_ahead(&mut source, bytes_max)), source);
    let ((ahead, more), source) = offload::done(run_on, read).await?;
    if !more {
        return whole(content_type, ahead, source.seen(), takes_gzip, meter).await;
    }
    let pieces = |source: Box<dyn ListSource>, run_on, sent_by| ListAnswer {
        content_type,
        is_zipped: takes_gzip,
        content: ListContent::Pieces { source, run_on, sent_by },
    };
    Ok(match (takes_gzip, form.is_for_people()) {
        (true, is_for_people) => {
            // Where there was so little of it, most pieces are nothing but a search.
            let is_long = is_for_people || ahead.len() >= GZIP_BYTES_MIN;
            let run_on = if is_long { RunOn::Thread } else { RunOn::Task };
            pieces(Box::new(Gzip::new(ahead, source)), run_on, SentBy::OwnTask)
        }
        (false, true) => pieces(Box::new(Resumed { ahead, rest: source }), RunOn::Thread, SentBy::OwnTask),
        (false, false) => pieces(Box::new(Resumed { ahead, rest: source }), RunOn::Task, SentBy::Connection),
    })
}

/// A list in gzip that needs little compressing, because the cache has most of it so.
///
/// - `run_on`: where those are compressed that it has not.
async fn of_segments(mut list: ListBody, run_on: RunOn, meter: &ListMeter) -> Result<SourceAnswer, Failure> {
    let content_type = Media::Json.content_type();
    let mut ahead = Vec::new();
    while ahead.len() < GZIP_BYTES_MIN {
        if !list.next_chunk(CHUNK_BYTES, &mut ahead) {
            return whole(content_type, ahead, list.seen(), true, meter).await;
        }
    }
    let sent_by = if run_on == RunOn::Task { SentBy::Connection } else { SentBy::OwnTask };
    let source = Box::new(Gzip::new(ahead, InBlocks(list)));
    Ok(ListAnswer { content_type, is_zipped: true, content: ListContent::Pieces { source, run_on, sent_by } })
}

/// A list that was not long.
async fn whole(
    content_type: &'static str,
    all: Vec<u8>,
    seen: SeenObjects,
    takes_gzip: bool,
    meter: &ListMeter,
) -> Result<SourceAnswer, Failure> {
    let is_zipped = answer::is_zipped(&all, takes_gzip);
    let run_on = if is_zipped { RunOn::Thread } else { RunOn::Task };
    let apart = meter.clone();
    let make = move || apart.apart(run_on, || Bytes::from(if is_zipped { Member::whole(&all) } else { all }));
    let bytes = offload::done(run_on, make).await?;
    Ok(ListAnswer { content_type, is_zipped, content: ListContent::Whole(bytes, seen) })
}

fn response<S: BodySource + 'static>(
    list: ListAnswer<S>,
    (stalled_readers, channel): Readers<'_>,
) -> HttpResponse {
    let body = match list.content {
        ListContent::Whole(bytes, _) => ResponseBody::whole(bytes),
        ListContent::Pieces { source, run_on, sent_by } => {
            let pieces = PiecewiseBody::new(Box::new(source), run_on, (stalled_readers, channel));
            ResponseBody::new(Content::List { pieces, sent_by })
        }
    };
    let response = answer::response(status::OK, list.content_type, body);
    if list.is_zipped { answer::zipped(response) } else { response }
}
