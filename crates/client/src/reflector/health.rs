//! How a reflector fares.

use forebay_rt::Duration;

use super::input::Fault;
use super::rules::Seen;

/// How it fares, as a value. Times are those of the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Since when a whole state is held; stays when the connection does not.
    pub synced_since: Option<Duration>,
    /// When something last came from the server that was not a refusal.
    pub last_heard_at: Option<Duration>,
    /// `None` when what was asked for last was answered, or is under way for the first time.
    pub failing: Option<Failing>,
}

/// That the reflector fails, why, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// When it last did not.
    pub since: Duration,
    /// What happened last.
    pub why: Why,
    /// Failures since then.
    pub times: u32,
}

/// Why it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// 401: the credentials are not, or no longer, known.
    Unauthorized,
    /// 403: they do not allow it.
    Forbidden,
    /// 404: nothing of that name is served.
    NotFound,
    /// 429.
    TooManyRequests,
    /// Another code, as an answer.
    Refused(u16),
    /// Another code, as a frame.
    StreamError(u16),
    /// The server is behind what was had from another one, or has offered an older state.
    Lagging,
    Fault(Fault),
    /// Frames, items or answers that could not be read.
    Garbled,
    /// Nothing came for longer than can be.
    Silent,
    /// Watches end as soon as they are open.
    EndsEarly,
    /// What there is is more than may be held here. Nothing is held, and it is tried again much later.
    OverLimit,
}

impl Why {
    /// That it fails for this is disproved by the head of an answer; otherwise it takes a frame.
    pub(super) fn ends_with_an_answer(self) -> bool {
        !matches!(
            self,
            Why::StreamError(_) | Why::Lagging | Why::Garbled | Why::Silent | Why::EndsEarly | Why::OverLimit
        )
    }

    /// `None` for what is not a failure: an end, and what a list mends.
    pub(super) fn of(seen: &Seen<'_>) -> Option<Why> {
        let said = match seen {
            Seen::Refused(said) | Seen::Error(said) => said,
            Seen::Fault(fault) => return Some(Why::Fault(*fault)),
            Seen::Garbled | Seen::NotAWatch => return Some(Why::Garbled),
            Seen::Stale => return Some(Why::Lagging),
            Seen::Silent => return Some(Why::Silent),
            Seen::Ended | Seen::WentBack | Seen::NoEndBookmark | Seen::PlainBookmark => return None,
        };
        match said.code {
            _ if said.is_too_large() => Some(Why::Lagging),
            _ if said.is_expired() => None,
            401 => Some(Why::Unauthorized),
            403 => Some(Why::Forbidden),
            404 => Some(Why::NotFound),
            429 => Some(Why::TooManyRequests),
            code if seen.is_in_stream() => Some(Why::StreamError(code)),
            code => Some(Why::Refused(code)),
        }
    }
}
