//! What a reflector is told.

use forebay_apimachinery::Revision;
use forebay_rt::Duration;

/// Something that happened. All but [`Start`](Input::Start), [`Timer`](Input::Timer),
/// [`ServerAnswers`](Input::ServerAnswers), [`OverLimit`](Input::OverLimit) and [`MadeAnew`](Input::MadeAnew)
/// is of the request that is under way. [`Refused`](Input::Refused), [`Failed`](Input::Failed),
/// [`Ended`](Input::Ended) and [`Page`](Input::Page) are the last of theirs, and after
/// [`Effect::HangUp`](super::Effect::HangUp) nothing of it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Begin. With a revision there is a whole state of it already, from a disk for instance, and the watch
    /// goes on from there.
    Start { from: Option<Revision> },
    /// The head of the answer came, and it is a success.
    Opened,
    /// The head of the answer came, and it is none.
    Refused(Refusal),
    /// The request, or the answer halfway through, came to grief below HTTP.
    Failed(Fault),
    /// A frame of a watch: an object was added, modified or deleted.
    Event { revision: Revision },
    /// The frame of the next [`Event`](Input::Event) modifies or deletes an object: of a watch-list that is
    /// behind its state, whose end bookmark is due, however much else is told.
    PastState,
    /// A frame of a watch: nothing up to `revision` was missed.
    Bookmark {
        revision: Revision,
        /// It has the annotation that ends the state of a watch-list.
        ends_state: bool,
    },
    /// Bytes came, and the answer stands in the middle of a frame or an item.
    HalfFrame,
    /// A frame of a watch: `ERROR`.
    StreamError(Refusal),
    /// The head of a page came before its items: the revision of the list. Where it is told, a state that is
    /// too old is refused before the first of its objects is taken.
    PageBegan { revision: Revision },
    /// An item of a page.
    Item,
    /// A page is whole.
    Page {
        /// The revision of the list.
        revision: Revision,
        /// The token of the page after it; empty is none.
        next: Option<String>,
    },
    /// A frame, or a page, that could not be read, or was too long to be.
    Garbled,
    /// What was to be a watch is a list, or nothing that is known.
    NotAWatch,
    /// The answer ended as an answer should, between two frames.
    Ended,
    /// The time of the last [`Effect::WakeAt`](super::Effect::WakeAt) has come.
    Timer,
    /// The server could not be reached, and has answered somebody else now.
    ServerAnswers,
    /// What is held is more than may be held: all of it is to go, and the whole state is asked for again much
    /// later.
    OverLimit,
    /// Somebody knows that the collection was deleted and made anew: a `CustomResourceDefinition` for
    /// instance.
    MadeAnew,
}

/// What a server said instead of what it was asked for, as an answer or as a frame: of a `Status` what
/// decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The code of the answer; of a frame the `code` of its `Status`.
    pub code: u16,
    /// Empty where there was no `Status`.
    pub reason: String,
    /// That of the `Status`, or the beginning of a body that was none.
    pub message: String,
    /// One of the causes is `ResourceVersionTooLarge`.
    pub too_large: bool,
    /// The header, or else `retryAfterSeconds`.
    pub retry_after: Option<Duration>,
}

/// What can befall a request below HTTP. They are treated alike, and told apart for whoever has to mend them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Nobody listens.
    Refused,
    /// The host cannot be reached.
    Unreachable,
    /// The host's name has no address.
    Dns,
    /// The handshake failed, or the certificate did not convince.
    Tls,
    /// Reset, or closed before the head.
    Reset,
    /// The connection ended between two frames without the end of the body, or in the middle of a frame.
    CutShort,
    /// HTTP/2: the server sends its clients away, and this request was not served.
    GoAway,
    /// HTTP/2: `RST_STREAM`.
    StreamReset,
    /// HTTP/2: no answer to a ping.
    PingLost,
    /// A time of the client's ran out, wherever the answer stood.
    TimedOut,
    /// A part of a frame came, and nothing more of it for too long.
    HalfFrame,
    /// Anything else.
    Other,
}

impl Fault {
    pub const ALL: [Fault; 12] = [
        Fault::Refused,
        Fault::Unreachable,
        Fault::Dns,
        Fault::Tls,
        Fault::Reset,
        Fault::CutShort,
        Fault::GoAway,
        Fault::StreamReset,
        Fault::PingLost,
        Fault::TimedOut,
        Fault::HalfFrame,
        Fault::Other,
    ];

    /// Whether the connection may look alive to the transport and is not.
    pub(super) fn leaves_a_dead_connection(self) -> bool {
        matches!(self, Fault::PingLost | Fault::TimedOut | Fault::HalfFrame)
    }
}
