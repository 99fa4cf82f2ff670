//! What a reflector wants done, and what it has to say.

use forebay_apimachinery::Revision;
use forebay_rt::Duration;

use super::health::Why;
use crate::Ask;

/// Something to be done, in the order in which they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make this request. Nothing is under way.
    Ask(Ask),
    /// End the request under way, and tell nothing more of it.
    HangUp,
    /// The connection of the last request may be dead without anybody having noticed: the next goes over a
    /// new one.
    NewConnection,
    /// Give [`Input::Timer`](super::Input::Timer) at that time. Takes the place of one that was given before.
    WakeAt(Duration),
    /// The frame or item of this input counts: apply it. Of an event it is also progress to the event's
    /// revision.
    Take,
    /// The frame or item of this input does not count.
    Skip,
    /// A whole state follows, from its beginning: what is taken until [`EndState`](Effect::EndState) are
    /// objects of it or changes on top of it, and the revision of before goes on counting. A state that had
    /// begun and not ended is given up.
    BeginState {
        why: ListReason,
        /// The store was restored: an object may take the place of one with a higher revision. Otherwise it
        /// never does.
        may_go_back: bool,
    },
    /// All that is held goes, also a state that has begun: there is none from now on.
    LetGo,
    /// The state is whole, of this revision: what was held before and did not come up is gone.
    EndState { revision: Revision },
    /// Nothing up to here was missed.
    Progress(Revision),
    /// For logs, metrics and people.
    Report(Report),
}

/// Why the whole state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListReason {
    /// There was no state before.
    First,
    /// The server has dropped what came after the revision.
    Expired,
    /// An event or bookmark was older than what was had.
    WentBack,
    /// The newest revision is below the one that was had.
    Restored,
    /// The server says that it lost an event.
    LostEvent,
    /// The same error twice from one revision, with nothing in between.
    SameErrorTwice,
    /// A frame that cannot be read, twice from one revision.
    Garbled,
    /// The collection was not served and then was: its objects may be others.
    ServedAgain,
    /// The collection was made anew.
    MadeAnew,
    /// All of it had been let go of, because it was more than may be held.
    LetGo,
}

/// How a whole state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    WatchList,
    Pages,
}

/// Why a watch-list became pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// The server does not know it, and says so.
    Refused,
    /// The server answered with something else.
    NotAWatch,
    /// Nothing came any more, and no end bookmark had come.
    NoEndBookmark,
    /// A bookmark came that was to end the state and does not say so.
    PlainBookmark,
    /// The stream ended before its end bookmark.
    Ended,
    /// The connection failed halfway.
    Cut,
    /// The server had an error of its own, in the stream or several times over.
    Error,
    /// A frame could not be read.
    Garbled,
}

/// Why a list that had begun begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Anew {
    /// The token that the list goes on with has expired.
    TokenExpired,
    /// The page that the token leads to cannot be read.
    Garbled,
}

/// Something that is worth to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A whole state came.
    Listed { why: ListReason, way: Way, revision: Revision },
    /// The state is asked for in pages.
    InPages {
        why: Fallback,
        /// From now on always: the server has no watch-lists. Said once.
        remembered: bool,
    },
    /// A state older than what is held was offered, and was not taken.
    StaleState { held: Revision, offered: Revision },
    /// A list that had begun begins anew.
    ListAnew(Anew),
    /// The newest revision was asked for, to know a server that lags from a store that was restored.
    Probed { held: Revision, newest: Revision },
    /// The state that came is older than the one before: the store was restored.
    WentBack { from: Revision, to: Revision },
    /// Nothing came over a watch for longer than can be, and it is taken up anew.
    Silent,
    /// The reflector fails, for a reason that was not reported yet.
    Failing(Why),
    /// The reflector fails no longer.
    Recovered,
}
