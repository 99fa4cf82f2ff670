//! What upstream's own tests ask of its field manager, and what it answers them: the same is asked of this
//! one.
//!
//! In: the package's tests, out of Go's module cache, at test time, run in a copy in which what is asked is
//! written down (`go/recorded`). Their objects are as they are, of the published types. Never: a copy of
//! their cases here.

use forebay_fieldmanager::{ConvertError, FieldType, Versions};
use serde_json::Value;

use crate::go;
use crate::requests::check;

/// What must be recorded at least: less would mean that it is not asked any more.
const RECORDS_MIN: usize = 100;

/// A kind whose objects are what they say, in every version that somebody names.
struct AsTheyAre(FieldType<'static>);

impl Versions<'static> for AsTheyAre {
    fn type_in(&self, _api_version: &str) -> Result<FieldType<'static>, ConvertError> {
        Ok(self.0)
    }

    fn convert(&self, object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        Ok(object.clone())
    }

    fn complete(&self, _object: &mut Value, _ty: FieldType<'static>) {}
}

#[test]
fn what_upstreams_tests_ask_is_answered_alike() {
    let Some(records) = go::recorded() else { return };
    let mut wrong = Vec::new();
    for record in &records {
        let (step, done) = (&record["Step"], &record["Done"]);
        let live = &done["live"];
        let text = |name: &str| live[name].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let Some(ty) = FieldType::of_kind(group, version, text("kind")) else {
            wrong.push(format!("no kind {} {}", text("apiVersion"), text("kind")));
            continue;
        };
        if let Err(why) = check(&AsTheyAre(ty), text("kind"), step, done, &|_, object| object) {
            wrong.push(format!("{why}\n  step {step}\n  live {live}"));
        }
    }
    let shown: Vec<&str> =
        wrong.iter().take(5).map(|why| &why[..why.floor_char_boundary(why.len().min(4_000))]).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), records.len(), shown.join("\n"));
    assert!(records.len() >= RECORDS_MIN, "{}", records.len());
}
