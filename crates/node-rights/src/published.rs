//! The graph in force: one publishes it, everybody who decides reads it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use crate::graph::NodeGraph;

/// See the module's doc. Nothing leads to a node until one is published.
#[derive(Debug, Default)]
pub struct NodesInForce(ArcSwap<NodeGraph>);

impl NodesInForce {
    /// As it is now, for as long as a decision takes.
    pub fn load(&self) -> Guard<Arc<NodeGraph>> {
        self.0.load()
    }

    /// From now on it is this. One owner: who follows what it is made of.
    pub fn publish(&self, graph: NodeGraph) {
        self.0.store(Arc::new(graph));
    }
}
