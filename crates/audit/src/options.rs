//! Where events are kept and how, as kube-apiserver's flags say it.
//!
//! In: values of flags. Out: the same, checked, in kube-apiserver's words. Never: reads a flag or a file.
//!
//! Source: apiserver v0.36.3 `pkg/server/options/audit.go`.

use std::path::PathBuf;

use forebay_rt::Duration;

/// See the module's doc. Without a log and a webhook nothing is kept.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    pub log: Option<LogOptions>,
    pub webhook: Option<WebhookOptions>,
}

/// A file of lines.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// `-` is standard output.
    pub path: PathBuf,
    pub format: LogFormat,
    /// Days after which older files go; 0: never.
    pub age_days_max: u32,
    /// Older files that stay; 0: all.
    pub backups_max: u32,
    /// Megabytes after which another file is begun; 0: never.
    pub megabytes_max: u32,
    /// Whether older files are compressed.
    pub compresses: bool,
    pub batch: BatchOptions,
    pub truncate: TruncateOptions,
}

/// What a line of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    /// A line of text.
    Legacy,
}

/// A server that is sent lists of events.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// How long to wait before what failed is sent again; longer each time.
    pub backoff: Duration,
    pub batch: BatchOptions,
    pub truncate: TruncateOptions,
}

/// Whether requests wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// They do not: events wait in a buffer.
    Batch,
    /// They do, and go on where an event is lost.
    Blocking,
    /// They do, and a request that is not noted is refused before it begins.
    BlockingStrict,
}

/// How events become batches, of which all but the mode is for [`AuditMode::Batch`].
#[derive(Clone, Debug)]
pub struct BatchOptions {
    pub mode: AuditMode,
    /// Events that wait. What is beyond is lost.
    pub buffer: usize,
    pub size_max: usize,
    /// How long a batch that is not full waits for more.
    pub wait_max: Duration,
    /// Batches a second, and how many may go at once; `None`: as many as there are.
    pub throttle: Option<(f32, u32)>,
}

/// What is done with what is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncateOptions {
    pub is_on: bool,
    /// A longer event loses its objects.
    pub event_bytes_max: usize,
    /// A longer batch is sent in parts.
    pub batch_bytes_max: usize,
}

impl LogFormat {
    pub fn named(name: &str) -> Option<LogFormat> {
        match name {
            "json" => Some(LogFormat::Json),
            "legacy" => Some(LogFormat::Legacy),
            _ => None,
        }
    }
}

impl AuditMode {
    pub fn named(name: &str) -> Option<AuditMode> {
        match name {
            "batch" => Some(AuditMode::Batch),
            "blocking" => Some(AuditMode::Blocking),
            "blocking-strict" => Some(AuditMode::BlockingStrict),
            _ => None,
        }
    }
}

impl AuditOptions {
    /// Whether they make sense.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), String> {
        if let Some(log) = &self.log {
            log.batch.check("log")?;
            log.truncate.check("log")?;
        }
        if let Some(webhook) = &self.webhook {
            webhook.batch.check("webhook")?;
            webhook.truncate.check("webhook")?;
        }
        Ok(())
    }
}

impl BatchOptions {
    fn check(&self, of: &str) -> Result<(), String> {
        if self.mode != AuditMode::Batch {
            return Ok(());
        }
        let positive = |what: &str, value: &dyn std::fmt::Display| {
            Err(format!("invalid audit batch {of} {what} {value}, must be a positive number"))
        };
        match self.throttle {
            _ if self.buffer == 0 => positive("buffer size", &self.buffer),
            _ if self.size_max == 0 => positive("max batch size", &self.size_max),
            Some((qps, _)) if qps.is_nan() || qps <= 0.0 => positive("throttle QPS", &qps),
            Some((_, 0)) => positive("throttle burst", &0),
            _ => Ok(()),
        }
    }
}

impl TruncateOptions {
    fn check(self, of: &str) -> Result<(), String> {
        let (event, batch) = (self.event_bytes_max, self.batch_bytes_max);
        if event == 0 {
            return Err(format!(
                "invalid audit truncate {of} max event size {event}, must be a positive number"
            ));
        }
        if batch < event {
            return Err(format!(
                "invalid audit truncate {of} max batch size {batch}, must be greater than max event size ({event})"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) fn batch(mode: AuditMode) -> BatchOptions {
    BatchOptions { mode, buffer: 4, size_max: 2, wait_max: Duration::from_secs(30), throttle: None }
}

#[cfg(test)]
pub(crate) const NO_LIMIT: TruncateOptions =
    TruncateOptions { is_on: false, event_bytes_max: 100 << 10, batch_bytes_max: 10 << 20 };

/// A file of JSON lines that is begun anew after a megabyte, and of which nothing goes.
#[cfg(test)]
pub(crate) fn json_lines(path: PathBuf) -> LogOptions {
    LogOptions {
        path,
        format: LogFormat::Json,
        age_days_max: 0,
        backups_max: 0,
        megabytes_max: 1,
        compresses: false,
        batch: batch(AuditMode::Blocking),
        truncate: NO_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_told_in_kube_apiservers_words() {
        let good = batch(AuditMode::Batch);
        let told = |batch: BatchOptions, truncate: TruncateOptions| {
            let webhook = Some(WebhookOptions { backoff: Duration::ZERO, batch, truncate });
            AuditOptions { log: None, webhook }.check().err().unwrap_or_default()
        };
        for (batch, want) in [
            (good.clone(), ""),
            (
                BatchOptions { buffer: 0, ..good.clone() },
                "invalid audit batch webhook buffer size 0, must be a positive number",
            ),
            (
                BatchOptions { size_max: 0, ..good.clone() },
                "invalid audit batch webhook max batch size 0, must be a positive number",
            ),
            (
                BatchOptions { throttle: Some((-1.5, 1)), ..good.clone() },
                "invalid audit batch webhook throttle QPS -1.5, must be a positive number",
            ),
            (
                BatchOptions { throttle: Some((1.0, 0)), ..good.clone() },
                "invalid audit batch webhook throttle burst 0, must be a positive number",
            ),
            // Nobody looks at what is not used.
            (BatchOptions { buffer: 0, mode: AuditMode::Blocking, ..good.clone() }, ""),
        ] {
            assert_eq!(told(batch, NO_LIMIT), want);
        }
        assert_eq!(
            told(good, TruncateOptions { batch_bytes_max: 10, ..NO_LIMIT }),
            "invalid audit truncate webhook max batch size 10, must be greater than max event size (102400)"
        );
    }
}
