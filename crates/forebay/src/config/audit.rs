//! What is decided of audit logs: where events are kept and how, and which files say more.
//!
//! Source: apiserver v0.36.3 `pkg/server/options/audit.go`.

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
    let webhook = webhook(read)?.filter(|_| webhook_file.is_some());
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
    let number = |name| read.parsed(name, |value| values::number(value, i32::MAX as u32));
    let format = |name: &str| {
        let why = || format!("invalid audit log format {name}, allowed formats are \"legacy,json\"");
        LogFormat::named(name).ok_or_else(why)
    };
    let (batch, truncate) = both(read, "log", &LOG)?;
    let options = LogOptions {
        path: read.path("audit-log-path").unwrap_or_default(),
        format: read.parsed("audit-log-format", format)?,
        age_days_max: number("audit-log-maxage")?,
        backups_max: number("audit-log-maxbackup")?,
        megabytes_max: number("audit-log-maxsize")?,
        compresses: read.parsed("audit-log-compress", values::bool)?,
        batch,
        truncate,
    };
    Ok((!options.path.as_os_str().is_empty()).then_some(options))
}

fn webhook(read: &Reader) -> Result<Option<WebhookOptions>, Error> {
    let (batch, truncate) = both(read, "webhook", &WEBHOOK)?;
    let older = read.optional("audit-webhook-batch-initial-backoff", values::duration)?;
    let backoff = read.optional("audit-webhook-initial-backoff", values::duration)?.or(older);
    let backoff = match backoff {
        Some(backoff) => backoff,
        None => read.parsed("audit-webhook-initial-backoff", values::duration)?,
    };
    Ok(Some(WebhookOptions { backoff, batch, truncate }))
}

fn both(read: &Reader, of: &'static str, names: &Names) -> Result<(BatchOptions, TruncateOptions), Error> {
    let number = |name| read.parsed(name, |value| values::number(value, i32::MAX as u32));
    let mode = |name: &str| {
        let modes = "\"batch,blocking,blocking-strict\"";
        AuditMode::named(name)
            .ok_or_else(|| format!("invalid audit {of} mode {name}, allowed modes are {modes}"))
    };
    let version = |version: &str| match version {
        "audit.k8s.io/v1" => Ok(()),
        _ => Err("invalid group version, allowed versions are \"audit.k8s.io/v1\"".to_owned()),
    };
    read.parsed(names.version, version)?;
    let qps = read.parsed(names.qps, |value| value.parse::<f32>().map_err(|why| why.to_string()))?;
    let is_throttled = read.parsed(names.throttle, values::bool)?;
    let burst = number(names.burst)?;
    let batch = BatchOptions {
        mode: read.parsed(names.mode, mode)?,
        buffer: number(names.buffer)? as usize,
        size_max: number(names.size)? as usize,
        wait_max: read.parsed(names.wait, values::duration)?,
        throttle: is_throttled.then_some((qps, burst)),
    };
    let truncate = TruncateOptions {
        is_on: read.parsed(names.truncate, values::bool)?,
        event_bytes_max: number(names.event_bytes)? as usize,
        batch_bytes_max: number(names.batch_bytes)? as usize,
    };
    Ok((batch, truncate))
}
