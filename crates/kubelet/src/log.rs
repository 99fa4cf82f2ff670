//! Which part of a container's log somebody asks for: the options of `log`, and the query of a kubelet that
//! says the same.
//!
//! In: a query. Out: options that make sense, or what is wrong, in upstream's words. Never: asks anybody.
//!
//! Source: kubernetes v1.36.3 `apis/core/v1/zz_generated.conversion.go`, `apis/core/validation/validation.go`
//! (`ValidatePodLogOptions`), `registry/core/pod/strategy.go` (`LogLocation`).

use forebay_apimachinery::go_time::{self, Layout};
use forebay_apimachinery::options::Query;
use forebay_apimachinery::{Cause, CauseReason, Status};
use jiff::{SignedDuration, civil};

/// What stands for no time at all.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// See the module's doc.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<String>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    has_stream: bool,
    /// Nobody needs to vouch for the kubelet.
    pub skips_verification: bool,
}

impl LogOptions {
    /// Reads and judges them.
    ///
    /// - `pod`: its name.
    ///
    /// # Errors
    /// 400 for what is no number or no time, 422 for what makes no sense.
    pub fn read(query: &Query, pod: &str) -> Result<LogOptions, Status> {
        let read = LogOptions::of(query).map_err(Status::bad_request)?;
        let faults = read.faults();
        match faults.is_empty() {
            true => Ok(read),
            false => Err(Status::invalid("", "PodLogOptions", pod, faults)),
        }
    }

    fn of(query: &Query) -> Result<LogOptions, String> {
        let is_set = |name| query.boolean(name).unwrap_or_default();
        // In upstream's order: of several faults the first one is told.
        Ok(LogOptions {
            follow: is_set("follow"),
            previous: is_set("previous"),
            since_seconds: query.integer("sinceSeconds")?,
            since_time: query.first("sinceTime").map(time).transpose()?,
            timestamps: is_set("timestamps"),
            tail_lines: query.integer("tailLines")?,
            limit_bytes: query.integer("limitBytes")?,
            skips_verification: is_set("insecureSkipTLSVerifyBackend"),
            has_stream: query.first("stream").is_some(),
        })
    }

    fn faults(&self) -> Vec<Cause> {
        let mut faults = Vec::new();
        let mut is_less = |field: &str, value: Option<i64>, least: i64, why: &str| {
            if let Some(value) = value.filter(|value| *value < least) {
                let why = format!("Invalid value: {value}: {why}");
                faults.push(Cause::new(CauseReason::FieldValueInvalid, field, why));
            }
        };
        is_less("tailLines", self.tail_lines, 0, "must be greater than or equal to 0");
        is_less("limitBytes", self.limit_bytes, 1, "must be greater than 0");
        let forbidden = |field: &str, why: &str| {
            Cause::new(CauseReason::FieldValueForbidden, field, format!("Forbidden: {why}"))
        };
        match (&self.since_time, self.since_seconds) {
            (Some(_), Some(_)) => {
                // The field of no name, as upstream writes it.
                faults.push(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
            }
            (None, seconds) => is_less("sinceSeconds", seconds, 1, "must be greater than 0"),
            (Some(_), None) => {}
        }
        if self.has_stream {
            // Its gate is off.
            faults.push(forbidden("stream", "may not be specified"));
        }
        faults
    }

    /// What a kubelet is told of them, name by name.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let flags = [("follow", self.follow), ("previous", self.previous), ("timestamps", self.timestamps)];
        let flags =
            flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, "true".to_owned()));
        let numbers = [
            ("sinceSeconds", self.since_seconds),
            ("tailLines", self.tail_lines),
            ("limitBytes", self.limit_bytes),
        ];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string())));
        let since = self.since_time.iter().map(|since| ("sinceTime", since.clone()));
        flags.chain(numbers).chain(since).collect()
    }
}

/// A time as kubelets are told it: to the second.
fn time(text: &str) -> Result<String, String> {
    if matches!(text, "" | "null") {
        return Ok(NO_TIME.to_owned());
    }
    let read = go_time::parse(Layout::Rfc3339, text)?;
    // A timestamp of jiff's ends a day earlier than the years that are read.
    let since = civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(SignedDuration::from_secs(read.seconds));
    let since = since.map_err(|_| format!("parsing time {text:?}: year out of range"))?;
    Ok(format!("{since}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(query: &str) -> Result<String, (String, bool)> {
        let read = LogOptions::read(&Query::parse(query), "p");
        let read = read.map_err(|status| (status.message, status.kind == "PodLogOptions"))?;
        let pairs = read.pairs().into_iter().map(|(name, value)| format!("{name}={value}"));
        Ok(pairs.collect::<Vec<_>>().join("&"))
    }

    #[test]
    fn what_makes_sense_is_told_as_go_reads_it() {
        for (query, want) in [
            ("", ""),
            ("follow=False&previous=0&timestamps", "timestamps=true"),
            ("container=c&tailLines=0&limitBytes=1&follow=yes", "follow=true&tailLines=0&limitBytes=1"),
            ("sinceTime=2026-01-02T03:04:05.9%2B01:00", "sinceTime=2026-01-02T02:04:05Z"),
            ("sinceTime=null", "sinceTime=0001-01-01T00:00:00Z"),
            ("sinceTime=9999-12-31T23:59:59Z", "sinceTime=9999-12-31T23:59:59Z"),
            ("sinceTime=0000-01-01T00:00:00Z", "sinceTime=0000-01-01T00:00:00Z"),
            ("insecureSkipTLSVerifyBackend=true&pretty=true", ""),
        ] {
            assert_eq!(told(query), Ok(want.to_owned()), "{query}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_upstreams_words() {
        const TIME: &str =
            r#"parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#;
        const ONE: &str = "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
        for (query, why) in [
            ("tailLines=abc&sinceSeconds=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("limitBytes=", "strconv.ParseInt: parsing \"\": invalid syntax"),
            ("sinceTime=now", TIME),
        ] {
            assert_eq!(told(query), Err((why.to_owned(), false)), "{query}");
        }
        for (query, why) in [
            ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
            ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=0&sinceTime=null", ONE),
            ("stream=Stdout", "stream: Forbidden: may not be specified"),
        ] {
            assert_eq!(told(query), Err((format!("PodLogOptions \"p\" is invalid: {why}"), true)), "{query}");
        }
    }
}
