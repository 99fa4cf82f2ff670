//! CronJobs.
//!
//! In: a CronJob. Out: defaults, causes. Never: its Jobs.
//!
//! Source: kubernetes v1.36.3 `registry/batch/cronjob`, `apis/batch/{v1,validation}`.

use super::{job, schedule, spec};
use crate::core::pod;
use crate::core::pod::warnings::of_owner_name;
use crate::counts::not_negative;
use crate::field::{BadValue, Causes, Path};
use crate::meta::validate_built_in_update;
use crate::rule::Update;
use crate::selector;
use crate::value::{
    Members, child_made, child_or_empty, default, default_text, is_true, same_member, text, text_opt,
};
use crate::warnings;

const SPEC: Path<'static> = Path::root("spec");
/// What follows the name in the names of its Jobs takes 11 of the 63.
const NAME_BYTES_MAX: usize = 52;

pub fn defaults(cron_job: &mut Members) {
    let spec = child_made(cron_job, "spec");
    default_text(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    let job_spec = child_made(child_made(spec, "jobTemplate"), "spec");
    job::failure_patterns(job_spec);
    pod::defaults::template(child_made(job_spec, "template"));
}

pub fn validate_create(cron_job: &Members, causes: &mut Causes) {
    validate(child_or_empty(cron_job, "spec"), None, causes);
    let name = text(child_or_empty(cron_job, "metadata"), "name");
    if name.len() > NAME_BYTES_MAX {
        let at = Path::root("metadata");
        causes.invalid(&at.child("name"), name, "must be no more than 52 characters");
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    if update.is_status() {
        return;
    }
    validate_built_in_update(new, update.old, causes);
    validate(child_or_empty(new, "spec"), Some(child_or_empty(update.old, "spec")), causes);
}

fn validate(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    schedule_of(spec, old, causes);
    not_negative(spec, "startingDeadlineSeconds", &SPEC, causes);
    if !old.is_some_and(|old| same_member(old, spec, "timeZone"))
        && let Some(zone) = text_opt(spec, "timeZone")
        && let Some(fault) = schedule::time_zone_fault(zone)
    {
        let bad = BadValue::shown(forebay_apimachinery::json::to_go_text(&zone.into()));
        causes.invalid(&SPEC.child("timeZone"), bad, &fault);
    }
    match text(spec, "concurrencyPolicy") {
        "Allow" | "Forbid" | "Replace" => {}
        "" => causes.required(&SPEC.child("concurrencyPolicy"), ""),
        other => {
            causes.not_supported(&SPEC.child("concurrencyPolicy"), other, &["Allow", "Forbid", "Replace"])
        }
    }
    job_template(child_or_empty(child_or_empty(spec, "jobTemplate"), "spec"), causes);
    not_negative(spec, "successfulJobsHistoryLimit", &SPEC, causes);
    not_negative(spec, "failedJobsHistoryLimit", &SPEC, causes);
}

fn schedule_of(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let at = SPEC.child("schedule");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        return causes.required(&at, "");
    }
    if let Err(error) = schedule::parse(schedule) {
        causes.invalid(&at, schedule, &error);
    }
    if !schedule.contains("TZ") {
        return;
    }
    let had_one = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    if !had_one {
        causes.invalid(&at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if spec.contains_key("timeZone") {
        causes.invalid(&at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn job_template(job: &Members, causes: &mut Causes) {
    let at = SPEC.child("jobTemplate");
    let at = at.child("spec");
    spec::validate(job, &at, causes);
    if job.contains_key("selector") {
        causes.invalid(
            &at.child("selector"),
            selector::shown(job.get("selector")),
            "`selector` will be auto-generated",
        );
    }
    if is_true(job, "manualSelector") {
        causes.not_supported(&at.child("manualSelector"), BadValue::shown("true"), &["nil", "false"]);
    }
}

pub fn warn(job: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if update.is_none() {
        of_owner_name(job, out);
    }
    if warnings::is_of_interest(job, update) {
        let (spec, at) = (child_or_empty(job, "spec"), Path::root("spec"));
        let at = at.child("jobTemplate");
        let template = child_or_empty(spec, "jobTemplate");
        warnings::of_job_spec(child_or_empty(template, "spec"), &at.child("spec"), out);
    }
}
