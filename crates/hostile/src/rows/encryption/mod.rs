//! Rows on a plugin that has the keys of Secrets, and fails, dies or says too much once the server was
//! started again: what that does to who reads and writes Secrets, and to everybody else.

mod dead;
mod flood;
mod hanging;
mod hanging_at_decryption;
mod renaming_its_key;

use crate::beside::{SECRETS, SECRETS_PATH, secret};
use crate::prelude::*;
use crate::row::Rows;

pub(super) const ROWS: Rows = rows![dead, flood, hanging, hanging_at_decryption, renaming_its_key];

/// Lists, reads and writes Secrets, each a third of the time, on so many connections.
fn secrets(stage: Stage, connections: usize, size: usize) -> Scene {
    Box::pin(async move {
        let ask = |index: usize| match index % 3 {
            0 => Request::get(SECRETS_PATH),
            1 => Request::get(format!("{SECRETS_PATH}/before-{}", index % SECRETS)),
            _ => Request::post(SECRETS_PATH, JSON, secret(&format!("s{index}"))),
        };
        stage.each(connections, size, ask).await
    })
}
