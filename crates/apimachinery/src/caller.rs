//! Who asks, as far as the server knows them: a user, and the names that users and groups have by convention.
//!
//! Never: how that became known, or what follows from it.

use std::collections::BTreeMap;

/// The group of everyone who was authenticated, and of everyone who was not.
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user whom nobody knows.
pub const ANONYMOUS: &str = "system:anonymous";
/// Members may do everything, whatever is configured.
pub const MASTERS: &str = "system:masters";
/// The group of all service accounts; those of a namespace are in one named
/// `system:serviceaccounts:<namespace>`.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// The group of all nodes; one called `n` is the user `system:node:n`.
pub const NODES: &str = "system:nodes";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// What else is known of it, by key: `authentication.kubernetes.io/credential-id`.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Caller {
    /// The user whom nobody knows.
    pub fn anonymous() -> Caller {
        let (name, groups) = (ANONYMOUS.to_string(), vec![UNAUTHENTICATED.to_string()]);
        Caller { name, groups, ..Caller::default() }
    }

    /// The same user, in the group of everyone who is known.
    pub fn authenticated(mut self) -> Caller {
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_string());
        }
        self
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The node that it is, if it is one; empty where nobody can tell which.
    pub fn node(&self) -> Option<&str> {
        let name = self.name.strip_prefix("system:node:")?;
        self.is_in(NODES).then_some(name)
    }
}

/// How a service account is called as a user.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}
