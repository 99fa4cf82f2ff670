//! What OpenAPI says that requests are answered with: codes, as they stand in the documents.
//!
//! In: nothing. Out: codes and their words. Never: chooses what a request is answered with; that is
//! `status.rs`.

/// A request that was done, as kube-apiserver's documents know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    Ok,
    Created,
    Accepted,
}

impl Success {
    pub fn code(self) -> &'static str {
        match self {
            Success::Ok => "200",
            Success::Created => "201",
            Success::Accepted => "202",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Success::Ok => "OK",
            Success::Created => "Created",
            Success::Accepted => "Accepted",
        }
    }
}

/// What every request may be answered with: code, and words.
pub const UNAUTHORIZED: (&str, &str) = ("401", "Unauthorized");
