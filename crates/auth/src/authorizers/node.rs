//! Nodes: what their pods take, and what all of them may.
//!
//! In: the graph in force, a question. Out: that it is allowed, or why not. Never: says anything of who is no
//! node; waits; who follows pods is elsewhere.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/node/node_authorizer.go`.

use std::sync::Arc;

use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{Attributes, Caller};
use forebay_node_rights::{NodeRuling, NodesInForce, decide};

/// Allows what the graph in force does.
pub struct Node(pub Arc<NodesInForce>);

impl Authorizer for Node {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(match decide(&self.0.load(), asked) {
            NodeRuling::Allowed => Decision::Allow(Because::Unsaid),
            NodeRuling::NotAllowed(why) if !why.is_empty() => Decision::NoOpinion(Because::Said(why)),
            NodeRuling::NotAllowed(_) | NodeRuling::NoNode => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, caller: &Caller, _: &str, rules: &mut Rules) {
        if caller.node().is_some() {
            rules.incomplete = true;
            rules.errors.push("node authorizer does not support user rule resolution".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_nodes_cannot_be_told() {
        let node = |groups: &[&str]| {
            let groups = groups.iter().map(ToString::to_string).collect();
            Caller { name: "system:node:n".into(), groups, ..Caller::default() }
        };
        for (groups, incomplete) in [(&["system:nodes"][..], true), (&[], false)] {
            let mut rules = Rules::default();
            Node(Arc::default()).rules(&node(groups), "n", &mut rules);
            assert_eq!((rules.incomplete, rules.errors.len()), (incomplete, usize::from(incomplete)));
        }
    }
}
