//! A policy whose variables are each within the one before it, two hundred levels deep.

use serde_json::{Value, json};

use super::{API, policy};
use crate::prelude::*;

const NAME: &str = "policies-chained-variables";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // Variables.
    size: Sizes { full: 400, ten: 60 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let chained = |at: usize| {
        let inner = if at == 0 { "1".to_owned() } else { format!("variables.v{}", at - 1) };
        let text = format!("{}{inner}{}", "[".repeat(240), "]".repeat(240));
        json!({ "name": format!("v{at}"), "expression": text })
    };
    let variables: Vec<Value> = (0..size).map(chained).collect();
    let last = format!("variables.v{}.size() > 0", size - 1);
    let spec = json!({ "variables": variables, "validations": [{ "expression": last }] });
    let all = format!("{API}/validatingadmissionpolicies");
    Request::post(all, JSON, policy(NAME, NAME, &spec).to_string())
}
