//! What is decided of audit logs: where events are kept and how, and which files say more.
//!
//! Source: apiserver v0.36.3 `pkg/server/options/audit.go`.

use std::num::IntErrorKind;
use std::path::PathBuf;

use forebay_audit::{
    AuditMode, AuditOptions, BatchOptions, LogFormat, LogOptions, TruncateOptions, WebhookOptions,
};

use super::reader::Reader;
use crate::error::Error;
use crate::flags::values;

/// What is noted of requests, and where.
#[derive(Debug, Clone, Default)]
pub struct AuditConfig {
    /// `None`: nothing is noted.
    pub policy_file: Option<PathBuf>,
    /// The server that is sent events.
    pub webhook_file: Option<PathBuf>,
    pub options: AuditOptions,
}

/// The names of what a log and a webhook both have.
struct Names {
    mode: &'static str,
    version: &'static str,
    buffer: &'static str,
    size: &'static str,
    wait: &'static str,
    throttle: &'static str,
    qps: &'static str,
    burst: &'static str,
    truncate: &'static str,
    event_bytes: &'static str,
    batch_bytes: &'static str,
}

const LOG: Names = Names {
    mode: "audit-log-mode",
    version: "audit-log-version",
    buffer: "audit-log-batch-buffer-size",
    size: "audit-log-batch-max-size",
    wait: "audit-log-batch-max-wait",
    throttle: "audit-log-batch-throttle-enable",
    qps: "audit-log-batch-throttle-qps",
    burst: "audit-log-batch-throttle-burst",
    truncate: "audit-log-truncate-enabled",
    event_bytes: "audit-log-truncate-max-event-size",
    batch_bytes: "audit-log-truncate-max-batch-size",
};

const WEBHOOK: Names = Names {
    mode: "audit-webhook-mode",
    version: "audit-webhook-version",
    buffer: "audit-webhook-batch-buffer-size",
    size: "audit-webhook-batch-max-size",
    wait: "audit-webhook-batch-max-wait",
    throttle: "audit-webhook-batch-throttle-enable",
    qps: "audit-webhook-batch-throttle-qps",
    burst: "audit-webhook-batch-throttle-burst",
    truncate: "audit-webhook-truncate-enabled",
    event_bytes: "audit-webhook-truncate-max-event-size",
    batch_bytes: "audit-webhook-truncate-max-batch-size",
};

/// # Errors
/// The first flag that cannot be done as asked.
pub(super) fn decide(read: &Reader, warnings: &mut Vec<String>) -> Result<AuditConfig, Error> {
    let policy_file = read.path("audit-policy-file");
    let webhook_file = read.path("audit-webhook-config-file");
    let log = log(read)?;
    let webhook = webhook(read, webhook_file.is_some())?;
    let options = AuditOptions { log, webhook };
    options.check().map_err(Error::Conflict)?;
    if policy_file.is_none() && (options.log.is_some() || webhook_file.is_some()) {
        warnings.push("nothing is audited: there is no --audit-policy-file".to_owned());
    }
    if policy_file.is_some() && options.log.is_none() && webhook_file.is_none() {
        warnings.push("nothing is audited: there is no --audit-log-path or webhook".to_owned());
    }
    Ok(AuditConfig { policy_file, webhook_file, options })
}

fn log(read: &Reader) -> Result<Option<LogOptions>, Error> {
    let path = read.path("audit-log-path").filter(|path| !path.as_os_str().is_empty());
    let numbers = ["audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"];
    let [age, backups, megabytes] = numbers.map(|name| read.parsed(name, whole));
    let [age, backups, megabytes] = [age?, backups?, megabytes?];
    let compresses = read.parsed("audit-log-compress", values::bool)?;
    let Some((batch, truncate)) = both(read, "log", &LOG, path.is_some())? else { return Ok(None) };
    let format = |name: &str| {
        let why = || format!("invalid audit log format {name}, allowed formats are \"legacy,json\"");
        LogFormat::named(name).ok_or_else(why)
    };
    let format = read.parsed("audit-log-format", format)?;
    for (name, value) in numbers.into_iter().zip([age, backups, megabytes]) {
        if value < 0 {
            return Err(Error::Conflict(format!("--{name} {value} can't be a negative number")));
        }
    }
    // As many as there are is more than anybody has.
    let capped = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    Ok(path.map(|path| LogOptions {
        path,
        format,
        age_days_max: capped(age),
        backups_max: capped(backups),
        megabytes_max: capped(megabytes),
        compresses,
        batch,
        truncate,
    }))
}

fn webhook(read: &Reader, is_used: bool) -> Result<Option<WebhookOptions>, Error> {
    let older = read.optional("audit-webhook-batch-initial-backoff", values::duration)?;
    let backoff = read.optional("audit-webhook-initial-backoff", values::duration)?.or(older);
    let backoff = match backoff {
        Some(backoff) => backoff,
        None => read.parsed("audit-webhook-initial-backoff", values::duration)?,
    };
    let both = both(read, "webhook", &WEBHOOK, is_used)?;
    Ok(both.map(|(batch, truncate)| WebhookOptions { backoff, batch, truncate }))
}

/// What a log and a webhook both have. As upstream does, nobody judges what is not used: nothing then, though
/// what is no number is none.
fn both(
    read: &Reader,
    of: &'static str,
    names: &Names,
    is_used: bool,
) -> Result<Option<(BatchOptions, TruncateOptions)>, Error> {
    let number = |name| read.parsed(name, whole);
    let (buffer, size, burst) = (number(names.buffer)?, number(names.size)?, number(names.burst)?);
    let (event_bytes, batch_bytes) = (number(names.event_bytes)?, number(names.batch_bytes)?);
    let qps = read.parsed(names.qps, |value| value.parse::<f32>().map_err(|why| why.to_string()))?;
    let (is_throttled, is_on) =
        (read.parsed(names.throttle, values::bool)?, read.parsed(names.truncate, values::bool)?);
    let wait_max = read.parsed(names.wait, values::duration)?;
    if !is_used {
        return Ok(None);
    }
    let mode = |name: &str| {
        let modes = "\"batch,blocking,blocking-strict\"";
        AuditMode::named(name)
            .ok_or_else(|| format!("invalid audit {of} mode {name}, allowed modes are {modes}"))
    };
    let version = |version: &str| match version {
        "audit.k8s.io/v1" => Ok(()),
        _ => Err("invalid group version, allowed versions are \"audit.k8s.io/v1\"".to_owned()),
    };
    let mode = read.parsed(names.mode, mode)?;
    read.parsed(names.version, version)?;
    let negative = |what: String, value: i64| {
        Err(Error::Conflict(format!("invalid audit {what} {value}, must be a positive number")))
    };
    if mode == AuditMode::Batch {
        for (what, value) in [("buffer size", buffer), ("max batch size", size)] {
            if value < 0 {
                return negative(format!("batch {of} {what}"), value);
            }
        }
        if is_throttled && qps > 0.0 && burst < 0 {
            return negative(format!("batch {of} throttle burst"), burst);
        }
    }
    if event_bytes < 0 {
        return negative(format!("truncate {of} max event size"), event_bytes);
    }
    // What is checked and not negative; a buffer has as many places as a queue may have.
    let size_of = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX);
    let batch = BatchOptions {
        mode,
        buffer: size_of(buffer.min(i64::from(i32::MAX))),
        size_max: size_of(size),
        wait_max,
        throttle: is_throttled.then_some((qps, u32::try_from(burst.max(0)).unwrap_or(u32::MAX))),
    };
    let (event_bytes_max, batch_bytes_max) = (size_of(event_bytes), size_of(batch_bytes));
    Ok(Some((batch, TruncateOptions { is_on, event_bytes_max, batch_bytes_max })))
}

/// A whole number, as Go reads it in tens.
fn whole(text: &str) -> Result<i64, String> {
    text.parse().map_err(|why: std::num::ParseIntError| match why.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range".to_owned(),
        _ => "not a whole number".to_owned(),
    })
}
