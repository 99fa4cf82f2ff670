//! What a Job's status may become.
//!
//! In: a Job with its new status, and the stored one. Out: causes. Never: derives it.
//!
//! Source: kubernetes v1.36.3 `registry/batch/job/strategy.go`, `apis/batch/validation`. Rules that upstream applies only
//! when what they are about has changed are under the same conditions here.

use forebay_apimachinery::Seen;

use super::indexes;
use crate::counts::not_negative;
use crate::field::{BadValue, Causes, Path};
use crate::value::{Members, child, child_or_empty, int, list, objects, same_member, text, text_opt, texts};

const STATUS: Path<'static> = Path::root("status");

/// Whether a condition of the status is true.
pub fn is_true_condition(status: &Members, kind: &str) -> bool {
    objects(status, "conditions")
        .any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
}

/// The conditions that end a Job, or are about to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    complete: bool,
    failed: bool,
    failing: bool,
    succeeding: bool,
}

impl Ends {
    fn of(status: &Members) -> Ends {
        Ends {
            complete: is_true_condition(status, "Complete"),
            failed: is_true_condition(status, "Failed"),
            failing: is_true_condition(status, "FailureTarget"),
            succeeding: is_true_condition(status, "SuccessCriteriaMet"),
        }
    }

    fn finished(self) -> bool {
        self.complete || self.failed
    }
}

pub fn validate_update(new: &Members, old: &Members, causes: &mut Causes) {
    let (status, old_status) = (child_or_empty(new, "status"), child_or_empty(old, "status"));
    let spec = child_or_empty(new, "spec");
    let (ends, ended) = (Ends::of(status), Ends::of(old_status));
    ["active", "succeeded", "failed", "ready", "terminating"]
        .into_iter()
        .for_each(|name| not_negative(status, name, &STATUS, causes));
    uncounted(status, causes);
    times(status, old_status, ends, ended, causes);
    early_ends(status, old_status, ends, ended, causes);
    finished(spec, status, old_status, ends, ended, causes);
    completed_indexes(spec, status, old_status, causes);
    ready(status, old_status, ends, ended, causes);
    conditions(spec, ends, causes);
    never_again(status, old_status, ends, ended, spec, causes);
}

fn changed(status: &Members, old: &Members, name: &str) -> bool {
    !same_member(status, old, name)
}

fn uncounted(status: &Members, causes: &mut Causes) {
    let Some(uncounted) = child(status, "uncountedTerminatedPods") else { return };
    let at = STATUS.child("uncountedTerminatedPods");
    let mut seen = Seen::default();
    for name in ["succeeded", "failed"] {
        for (index, uid) in texts(uncounted, name).enumerate() {
            let at = at.child(name);
            if uid.is_empty() {
                causes.invalid(&at.index(index), uid, "must not be empty");
            } else if seen.again(uid) {
                causes.duplicate(&at.index(index), uid);
            }
        }
    }
}

fn times(status: &Members, old: &Members, ends: Ends, ended: Ends, causes: &mut Causes) {
    if (ends.complete != ended.complete || ends.failed != ended.failed) && ends.complete && ends.failed {
        conditions_invalid("cannot set Complete=True and Failed=true conditions", causes);
    }
    if (ends.complete != ended.complete || ends.failing != ended.failing) && ends.complete && ends.failing {
        conditions_invalid("cannot set Complete=True and FailureTarget=true conditions", causes);
    }
    let (start, completion) = (text(status, "startTime"), text(status, "completionTime"));
    let at = STATUS.child("completionTime");
    let shown = || status.get("completionTime").map_or(BadValue::Nil, BadValue::Json);
    if ends.complete != ended.complete || changed(status, old, "completionTime") {
        if !completion.is_empty() && !ends.complete {
            causes.invalid(
                &at,
                shown(),
                "cannot set completionTime when there is no Complete=True condition",
            );
        }
        if completion.is_empty() && ends.complete {
            causes.required(&at, "completionTime is required for Complete jobs");
        }
    }
    let moved = changed(status, old, "startTime") || changed(status, old, "completionTime");
    if moved && !start.is_empty() && !completion.is_empty() && completion < start {
        causes.invalid(&at, shown(), "must be equal to or after `startTime`");
    }
}

fn early_ends(status: &Members, old: &Members, ends: Ends, ended: Ends, causes: &mut Causes) {
    let failing = ends.failed != ended.failed || changed(status, old, "failedIndexes");
    if failing && ends.failed && !ends.failing {
        conditions_invalid(
            "cannot set Failed=True condition without the FailureTarget=true condition",
            causes,
        );
    }
    let completing = ends.complete != ended.complete || ends.succeeding != ended.succeeding;
    if completing && ends.complete && !ends.succeeding {
        conditions_invalid(
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            causes,
        );
    }
}

fn finished(spec: &Members, status: &Members, old: &Members, ends: Ends, ended: Ends, causes: &mut Causes) {
    let turned = ends.finished() != ended.finished();
    if !ends.finished() {
        return;
    }
    let active = int(status, "active").unwrap_or(0);
    if (turned || changed(status, old, "active")) && active > 0 {
        causes.invalid(&STATUS.child("active"), active, "active>0 is invalid for finished job");
    }
    let idle = crate::value::is_true(spec, "suspend") && int(spec, "completions") == Some(0);
    if (turned || changed(status, old, "startTime")) && !idle && !status.contains_key("startTime") {
        causes.required(&STATUS.child("startTime"), "startTime is required for finished job");
    }
    let uncounted = child_or_empty(status, "uncountedTerminatedPods");
    let some = !list(uncounted, "succeeded").is_empty() || !list(uncounted, "failed").is_empty();
    if (turned || changed(status, old, "uncountedTerminatedPods")) && some {
        let shown = |name| match uncounted.get(name) {
            Some(uids) => forebay_apimachinery::json::to_go_text(uids),
            None => "null".into(),
        };
        let bad = format!("{{\"Succeeded\":{},\"Failed\":{}}}", shown("succeeded"), shown("failed"));
        causes.invalid(
            &STATUS.child("uncountedTerminatedPods"),
            BadValue::shown(bad),
            "must be empty for finished job",
        );
    }
}

fn completed_indexes(spec: &Members, status: &Members, old: &Members, causes: &mut Causes) {
    let completed = text(status, "completedIndexes");
    let failed = text_opt(status, "failedIndexes");
    let (completed_at, failed_at) = (STATUS.child("completedIndexes"), STATUS.child("failedIndexes"));
    let (completed_changed, failed_changed) =
        (changed(status, old, "completedIndexes"), changed(status, old, "failedIndexes"));
    let completions = int(spec, "completions");
    let per_index = spec.contains_key("backoffLimitPerIndex");
    if let (true, Some(completions)) = (completed_changed, completions)
        && let Err(error) = indexes::count(completed, completions)
    {
        causes.invalid(&completed_at, completed, &format!("error parsing completedIndexes: {error}"));
    }
    if let (true, true, Some(completions), Some(failed)) = (failed_changed, per_index, completions, failed)
        && let Err(error) = indexes::count(failed, completions)
    {
        let bad = BadValue::shown(forebay_apimachinery::json::to_go_text(&failed.into()));
        causes.invalid(&failed_at, bad, &format!("error parsing failedIndexes: {error}"));
    }
    if completed_changed && !completed.is_empty() && text(spec, "completionMode") != "Indexed" {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        causes.invalid(&completed_at, completed, detail);
    }
    let Some(failed) = failed else { return };
    if failed_changed && !per_index {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        causes.invalid(&failed_at, failed, detail);
    }
    if let (true, Some(completions)) = (failed_changed || completed_changed, completions)
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        causes.invalid(&failed_at, failed, &detail);
    }
}

fn ready(status: &Members, old: &Members, ends: Ends, ended: Ends, causes: &mut Causes) {
    let turned = ends.finished() != ended.finished() || changed(status, old, "terminating");
    let terminating = int(status, "terminating").unwrap_or(0);
    if turned && ends.finished() && terminating > 0 {
        causes.invalid(
            &STATUS.child("terminating"),
            terminating,
            "terminating>0 is invalid for finished job",
        );
    }
    let Some(ready) = int(status, "ready") else { return };
    let active = int(status, "active").unwrap_or(0);
    if (changed(status, old, "ready") || changed(status, old, "active")) && ready > active {
        causes.invalid(&STATUS.child("ready"), ready, "cannot set more ready pods than active");
    }
}

fn conditions(spec: &Members, ends: Ends, causes: &mut Causes) {
    if ends.succeeding && ends.failed {
        conditions_invalid("cannot set SuccessCriteriaMet=True and Failed=true conditions", causes);
    }
    if ends.succeeding && ends.failing {
        conditions_invalid("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", causes);
    }
    if spec.contains_key("successPolicy") && !ends.succeeding && ends.complete {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        conditions_invalid(detail, causes);
    }
}

fn never_again(
    status: &Members,
    old: &Members,
    ends: Ends,
    ended: Ends,
    spec: &Members,
    causes: &mut Causes,
) {
    let terminal = [
        ("Failed", ended.failed, ends.failed),
        ("Complete", ended.complete, ends.complete),
        ("FailureTarget", ended.failing, ends.failing),
    ];
    for (name, _, _) in terminal.into_iter().filter(|(_, was, is)| *was && !is) {
        conditions_invalid(&format!("cannot disable the terminal {name}=True condition"), causes);
    }
    let less = |name| int(status, name).unwrap_or(0) < int(old, name).unwrap_or(0);
    if less("failed") {
        let failed = int(status, "failed").unwrap_or(0);
        causes.invalid(&STATUS.child("failed"), failed, "cannot decrease the failed counter");
    }
    // An elastic indexed Job may give up what it has done.
    let elastic =
        text(spec, "completionMode") == "Indexed" && spec.get("completions") == spec.get("parallelism");
    if !elastic && less("succeeded") {
        let succeeded = int(status, "succeeded").unwrap_or(0);
        causes.invalid(&STATUS.child("succeeded"), succeeded, "cannot decrease the succeeded counter");
    }
    let both = |name| status.contains_key(name) && old.contains_key(name);
    if both("completionTime") && changed(status, old, "completionTime") {
        causes.invalid(&STATUS.child("completionTime"), status.get("completionTime"), "field is immutable");
    }
    let resumes = is_true_condition(old, "Suspended")
        && objects(status, "conditions")
            .any(|of| text(of, "type") == "Suspended" && text(of, "status") == "False");
    let suspended = crate::value::is_true(spec, "suspend");
    if old.contains_key("startTime") && changed(status, old, "startTime") && !resumes && !suspended {
        let detail = "field is immutable for unsuspended job once set";
        causes.invalid(&STATUS.child("startTime"), status.get("startTime"), detail);
    }
    if ended.succeeding && !ends.succeeding {
        conditions_invalid("cannot disable the SuccessCriteriaMet=True condition", causes);
    }
    if ended.complete && !ended.succeeding && ends.succeeding {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        conditions_invalid(detail, causes);
    }
}

fn conditions_invalid(detail: &str, causes: &mut Causes) {
    causes.invalid_omitted(&STATUS.child("conditions"), detail);
}
