//! Jobs and cron jobs.
//!
//! In: v1 values. Out: their cells. Never: a look at pods, nor at the schedule.

use jiff::Timestamp;
use serde_json::Value;

use crate::containers::Containers;
use crate::duration;
use crate::labels::format_selector;
use crate::member::{Member, between};
use crate::table::{AGE, CONTAINERS, Column, IMAGES, NAME, Printer, cells, integer, string};

const SELECTOR: Column = string("Selector", "Labels of the pods of the job.").wide();

pub(crate) static JOB: Printer = Printer::new(
    &[
        NAME,
        string("Status", "How far the job is."),
        string("Completions", "Pods that succeeded, of those wanted."),
        string("Duration", "Time the job took, or has taken."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    job_cells,
);

pub(crate) static CRON_JOB: Printer = Printer::new(
    &[
        NAME,
        string("Schedule", "When jobs start, in cron format."),
        string("Timezone", "Time zone of the schedule."),
        string("Suspend", "Whether no new jobs start.").type_("boolean"),
        integer("Active", "Jobs that run."),
        string("Last Schedule", "Time since a job was started last."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cron_job_cells,
);

fn job_cells(job: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = job.get("spec");
    let containers = Containers::of(spec.get("template"));
    cells![
        job.name(),
        job_status(job),
        completions(job),
        job_duration(job, now),
        job.age(now),
        containers.names,
        containers.images,
        format_selector(spec.get("selector").value()),
    ]
}

/// The first of these that holds; of two conditions of a type the first counts.
fn job_status(job: Member<'_>) -> &'static str {
    let has = |type_: &str| job.condition(type_).get("status").text() == "True";
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if job.is_deleting() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// Defaulting sets completions to 1 only when parallelism is not set either; a work queue has no number to
/// reach.
fn completions(job: Member<'_>) -> String {
    let (spec, succeeded) = (job.get("spec"), job.get("status").get("succeeded").int());
    match (spec.get("completions").int_if_set(), spec.get("parallelism").int_if_set()) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism @ 2..)) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: Member<'_>, now: Timestamp) -> String {
    let status = job.get("status");
    let Some(started) = status.get("startTime").time() else { return String::new() };
    duration::human(between(started, status.get("completionTime").time().unwrap_or(now)))
}

fn cron_job_cells(cron_job: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (cron_job.get("spec"), cron_job.get("status"));
    let job = spec.get("jobTemplate").get("spec");
    let last = status.get("lastScheduleTime");
    let containers = Containers::of(job.get("template"));
    cells![
        cron_job.name(),
        spec.get("schedule").text(),
        spec.get("timeZone").text_if_set().unwrap_or("<none>"),
        if spec.get("suspend").flag() { "True" } else { "False" },
        status.get("active").count(),
        if last.is_set() { last.since(now) } else { "<none>".to_owned() },
        cron_job.age(now),
        containers.names,
        containers.images,
        format_selector(job.get("selector").value()),
    ]
}
