//! How each verb shows in an operation.
//!
//! In: a verb. Out: its method, its action, the words of its operation's name. Never: who offers it.

/// One verb.
pub struct VerbWords {
    pub method: &'static str,
    /// `x-kubernetes-action`.
    pub action: &'static str,
    /// Begins the operation's name, before group and version.
    pub prefix: &'static str,
    /// Follows group and version.
    pub infix: &'static str,
}

pub const LIST: VerbWords = verb("get", "list", "list");
pub const CREATE: VerbWords = verb("post", "post", "create");
pub const READ: VerbWords = verb("get", "get", "read");
pub const REPLACE: VerbWords = verb("put", "put", "replace");
pub const PATCH: VerbWords = verb("patch", "patch", "patch");
pub const DELETE: VerbWords = verb("delete", "delete", "delete");
pub const WATCH: VerbWords = verb("get", "watch", "watch");
pub const WATCH_LIST: VerbWords = verb("get", "watchlist", "watch");
// Upstream cuts the name after the shortest verb it begins with.
pub const DELETE_COLLECTION: VerbWords =
    VerbWords { infix: "Collection", ..verb("delete", "deletecollection", "delete") };

/// The methods of exec, attach and port-forward.
pub const CONNECT_STREAM: [VerbWords; 2] = [connect("get", "Get"), connect("post", "Post")];

/// The methods of a proxy.
pub const CONNECT_ANY: [VerbWords; 7] = [
    connect("get", "Get"),
    connect("post", "Post"),
    connect("put", "Put"),
    connect("patch", "Patch"),
    connect("delete", "Delete"),
    connect("head", "Head"),
    connect("options", "Options"),
];

const fn verb(method: &'static str, action: &'static str, prefix: &'static str) -> VerbWords {
    VerbWords { method, action, prefix, infix: "" }
}

const fn connect(method: &'static str, infix: &'static str) -> VerbWords {
    VerbWords { method, action: "connect", prefix: "connect", infix }
}

/// A word with a capital.
pub fn title(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
