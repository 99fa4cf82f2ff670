//! What a server says instead of an answer.
//!
//! In: a `Status`: the body of a refused request, or the object of an ERROR event. Out: what decides what to
//! do next, and what a log says. Never: fails over a member that it knows and that has another type: it
//! counts as absent.

use std::ops::Range;

use forebay_rt::Duration;
use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::error::{WireError, garbled};
use super::text::string;
use super::walk::{Coming, Reached, Take, Visit, whole};
use crate::limits::CAUSES_MAX;
use crate::reflector::Refusal;

/// A `Status`. What it does not say is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusFrame {
    /// The HTTP code.
    pub code: u16,
    /// `Expired`.
    pub reason: String,
    pub message: String,
    pub retry_after_seconds: u32,
    /// The first ones, <= [`CAUSES_MAX`].
    pub causes: Vec<StatusCause>,
    /// A token that goes on with the list at its newest state, when the one asked with has expired.
    pub next: Option<String>,
}

/// One of several things that were wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// `ResourceVersionTooLarge`.
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl StatusFrame {
    /// What it asks of who was refused.
    ///
    /// - `headers`: of an answer; a frame of a stream has none.
    pub fn refusal(self, headers: Option<&HeaderMap>) -> Refusal {
        let header = headers.and_then(|headers| headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok());
        let seconds = header.or(Some(u64::from(self.retry_after_seconds)).filter(|seconds| *seconds > 0));
        Refusal {
            code: self.code,
            reason: self.reason,
            too_large: self.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge"),
            message: self.message,
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    /// Reads a body in JSON.
    ///
    /// # Errors
    /// [`WireError::Garbled`] when it is no `Status`.
    pub(super) fn of_body(body: &[u8]) -> Result<StatusFrame, WireError> {
        let mut scan = StatusScan::default();
        whole(body, &mut scan)?;
        if scan.kind == "Status" { Ok(scan.status) } else { garbled("not a Status") }
    }

    /// Reads the object of an ERROR event, whatever kind it says it is.
    pub(super) fn of_error(object: &[u8]) -> Result<StatusFrame, WireError> {
        let mut scan = StatusScan::default();
        whole(object, &mut scan)?;
        Ok(scan.status)
    }
}

#[derive(Default)]
struct StatusScan {
    status: StatusFrame,
    kind: String,
    inside: Inside,
    taking: What,
}

/// The member of the Status that was entered.
#[derive(Clone, Copy, Default)]
enum Inside {
    #[default]
    Details,
    Metadata,
}

/// A value that is taken.
#[derive(Clone, Copy, Default)]
enum What {
    #[default]
    Kind,
    Code,
    Reason,
    Message,
    Next,
    RetryAfter,
    CauseReason,
    CauseMessage,
    CauseField,
}

impl StatusScan {
    fn enter(&mut self, inside: Inside) -> Take {
        self.inside = inside;
        Take::Enter
    }

    fn cause(&mut self) -> Take {
        if self.status.causes.len() == CAUSES_MAX {
            return Take::Skip;
        }
        self.status.causes.push(StatusCause::default());
        Take::Enter
    }
}

impl Visit for StatusScan {
    fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        self.taking = match (coming.level, coming.name, self.inside) {
            (0, b"details", _) if coming.first == b'{' => return Ok(self.enter(Inside::Details)),
            (0, b"metadata", _) if coming.first == b'{' => return Ok(self.enter(Inside::Metadata)),
            (1, b"causes", Inside::Details) if coming.first == b'[' => return Ok(Take::Enter),
            (2, _, _) if coming.first == b'{' => return Ok(self.cause()),
            (0, b"kind", _) => What::Kind,
            (0, b"code", _) => What::Code,
            (0, b"reason", _) => What::Reason,
            (0, b"message", _) => What::Message,
            (1, b"continue", Inside::Metadata) => What::Next,
            (1, b"retryAfterSeconds", Inside::Details) => What::RetryAfter,
            (3, b"reason", _) => What::CauseReason,
            (3, b"message", _) => What::CauseMessage,
            (3, b"field", _) => What::CauseField,
            _ => return Ok(Take::Skip),
        };
        Ok(Take::Value)
    }

    fn passed(&mut self, _: usize, value: &[u8], _: Range<usize>) -> Result<(), WireError> {
        let number = || str::from_utf8(value).ok()?.parse::<u32>().ok();
        let text = || string(value).ok().flatten().unwrap_or_default();
        let mut unkept = StatusCause::default();
        let status = &mut self.status;
        let cause = status.causes.last_mut().unwrap_or(&mut unkept);
        match self.taking {
            What::Kind => self.kind = text(),
            What::Code => status.code = number().and_then(|code| code.try_into().ok()).unwrap_or(0),
            What::Reason => status.reason = text(),
            What::Message => status.message = text(),
            What::Next => status.next = Some(text()).filter(|token| !token.is_empty()),
            What::RetryAfter => status.retry_after_seconds = number().unwrap_or(0),
            What::CauseReason => cause.reason = text(),
            What::CauseMessage => cause.message = text(),
            What::CauseField => cause.field = text(),
        }
        Ok(())
    }

    fn left(&mut self, _: usize, _: usize, _: usize) -> Reached {
        Reached::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_LARGE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#;

    #[test]
    fn a_refusal_says_what_to_do() {
        let status = StatusFrame::read(TOO_LARGE.as_bytes()).expect("a Status");
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        let want = StatusFrame {
            code: 504,
            reason: "Timeout".into(),
            message: "Timeout: Too large resource version: 9, current: 5".into(),
            retry_after_seconds: 1,
            causes: vec![cause],
            next: None,
        };
        assert_eq!(status, want);
    }

    #[test]
    fn an_expired_token_comes_with_another_one() {
        let body = br#"{"metadata":{"continue":"e30"},"code":410,"reason":"Expired","kind":"Status"}"#;
        let status = StatusFrame::read(body).expect("a Status");
        assert_eq!((status.code, status.next.as_deref()), (410, Some("e30")));
    }

    #[test]
    fn members_of_other_types_count_as_absent() {
        let body =
            br#"{"kind":"Status","code":"x","message":5,"details":[],"metadata":null,"reason":{"a":[]}}"#;
        assert_eq!(StatusFrame::read(body), Ok(StatusFrame::default()));
    }

    #[test]
    fn causes_beyond_the_limit_are_forgotten() {
        let causes = vec![r#"{"field":"f"}"#; CAUSES_MAX + 5].join(",");
        let body = format!(r#"{{"kind":"Status","details":{{"causes":[{causes}],"retryAfterSeconds":3}}}}"#);
        let status = StatusFrame::read(body.as_bytes()).expect("a Status");
        assert_eq!((status.causes.len(), status.retry_after_seconds), (CAUSES_MAX, 3));
    }

    #[test]
    fn plain_text_is_no_status() {
        for body in ["", "Too many requests, please try again later.\n", r#"{"kind":"Pod"}"#, "{}", "[]"] {
            assert!(StatusFrame::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
