//! The users of the scenarios avalanche and fairness, by their tokens: each in the flow that it has in a
//! cluster.
//!
//! In: how many nodes. Out: the file of `--token-auth-file`. Never: an administrator, whom nothing holds up.

use std::fmt::Write as _;
use std::path::Path;

use crate::Error;

/// A DaemonSet's pods: readers of everything, all by one service account.
pub const AGENT: &str = "agent";
/// A controller of the control plane.
pub const CONTROLLER: &str = "controller";
/// Who asks for more than anybody.
pub const GREEDY: &str = "greedy";
/// Followed by a number: controllers of users' own, each with a service account.
pub const APP: &str = "app-";
/// Followed by a number: nodes.
pub const NODE: &str = "node-";
pub const APPS: usize = 100;

/// The file, for [`Contender::member`](crate::contender::Contender::member).
pub fn write(dir: &Path, nodes: usize) -> Result<(), Error> {
    let path = dir.join("tokens.csv");
    std::fs::write(&path, csv(nodes)).map_err(Error::file("cannot write", &path))
}

fn csv(nodes: usize) -> String {
    let accounts = "system:serviceaccounts";
    let mut text =
        format!("{CONTROLLER},system:kube-controller-manager,controller\n{GREEDY},greedy,greedy\n");
    let mut line = |token: &str, user: &str, groups: &str| {
        let _ = writeln!(text, "{token},{user},{token},\"{groups}\"");
    };
    let agent = "system:serviceaccount:monitoring:agent";
    line(AGENT, agent, &format!("{accounts},{accounts}:monitoring"));
    for number in 0..APPS {
        let user = format!("system:serviceaccount:apps:{APP}{number}");
        line(&format!("{APP}{number}"), &user, &format!("{accounts},{accounts}:apps"));
    }
    for number in 0..nodes {
        line(&format!("{NODE}{number}"), &format!("system:node:{NODE}{number}"), "system:nodes");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_a_user_with_groups() {
        let text = csv(2);
        assert!(text.contains("\nnode-1,system:node:node-1,node-1,\"system:nodes\"\n"), "{text}");
        assert!(text.contains("\napp-0,system:serviceaccount:apps:app-0,app-0,\"system:serviceaccounts,system:serviceaccounts:apps\"\n"), "{text}");
        assert_eq!(text.lines().count(), 3 + APPS + 2);
    }
}
