//! Rows on a webhook that authorizes and fails, lies, or says nothing: what that does to who is asked about,
//! and to everybody whom roles or an answer that is kept let in.

mod cut_off;
mod flood;
mod garbage;
mod hanging;
mod hanging_before_roles;
mod lying_about_length;

use serde_json::Value;

use crate::prelude::*;
use crate::row::Rows;

pub(super) const ROWS: Rows =
    rows![cut_off, flood, garbage, hanging, hanging_before_roles, lying_about_length];

/// Has the webhook answer so, and asks on so many connections for what no role allows: each question is
/// another one, and none of them is answered without it.
fn asked(stage: Stage, connections: usize, size: usize, answer: Value) -> Scene {
    Box::pin(async move {
        stage.neighbours.authorizer_was_asked();
        stage.neighbours.authorizer_answers(answer);
        let get = |index: usize| Request::get(format!("{CONFIG_MAPS}/c{index}"));
        let tally = stage.each(connections, size, get).await?;
        match stage.neighbours.authorizer_was_asked() {
            0 => Err(Error::Answer { what: "the webhook".into(), answer: "was never asked".into() }),
            _ => Ok(tally),
        }
    })
}
