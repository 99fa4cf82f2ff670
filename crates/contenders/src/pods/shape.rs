//! The shapes of workloads: what differs between an ingress controller and a nightly report.
//!
//! In: the number of a workload. Out: its [`Shape`], one of [`SHAPES`]. Never: a name that only one pod has.

use crate::draw::Draw;

/// What workloads are, two words each.
const NAMES: [&str; 48] = [
    "checkout-api",
    "cart-store",
    "payment-gw",
    "ledger-sync",
    "invoice-job",
    "catalog-web",
    "search-index",
    "image-resize",
    "video-encode",
    "mail-relay",
    "push-notify",
    "sms-bridge",
    "auth-proxy",
    "session-cache",
    "user-profile",
    "feature-flags",
    "rate-limit",
    "geo-lookup",
    "stock-watch",
    "price-engine",
    "tax-rules",
    "ship-quote",
    "route-plan",
    "fleet-track",
    "sensor-feed",
    "metrics-agg",
    "log-forward",
    "trace-collect",
    "alert-router",
    "report-gen",
    "data-import",
    "etl-runner",
    "model-serve",
    "feature-store",
    "batch-score",
    "doc-convert",
    "pdf-render",
    "audit-trail",
    "policy-eval",
    "cert-rotate",
    "dns-cache",
    "edge-ingress",
    "web-front",
    "admin-ui",
    "graph-query",
    "queue-work",
    "cron-tidy",
    "backup-agent",
];

/// How many shapes there are.
pub const SHAPES: usize = NAMES.len();

/// What the pods of a kind of workload look like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: &'static str,
    /// One each; a mesh adds a sidecar.
    pub containers: Vec<Container>,
    pub has_init: bool,
    pub has_mesh: bool,
    /// Networks attached by another manager, which notes them in an annotation.
    pub has_networks: bool,
    pub has_affinity: bool,
    pub has_spread: bool,
    /// Volumes beside the token's: config maps, secrets, scratch space.
    pub volumes: usize,
    pub annotations: usize,
    pub tolerations: usize,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub name: &'static str,
    pub ports: usize,
    pub args: usize,
    /// Variables with the same value in all pods of the workload.
    pub shared_env: usize,
    /// Variables with another value in each pod.
    pub own_env: usize,
    /// Variables that refer to a Secret, a ConfigMap or the pod.
    pub referring_env: usize,
    pub has_probes: bool,
    pub has_limits: bool,
}

impl Shape {
    /// The shape of the workload at `index`.
    pub fn of(index: usize) -> Shape {
        // 31 and 48 share no factor: the first 48 workloads have 48 shapes, and neighbours are unlike.
        let number = index * 31 % SHAPES;
        let mut draw = Draw::of("shape", number as u64);
        let (has_mesh, more) = (draw.chance(8), usize::from(draw.chance(8)));
        let names = ["app", "worker"];
        let mut containers: Vec<Container> =
            names[..=more].iter().map(|name| Container::main(name, &mut draw)).collect();
        if has_mesh {
            containers.push(Container::sidecar(&mut draw));
        }
        Shape {
            name: NAMES[number],
            containers,
            has_init: draw.chance(12),
            has_mesh,
            has_networks: draw.chance(35),
            has_affinity: draw.chance(20),
            has_spread: draw.chance(20),
            volumes: draw.below(2),
            annotations: 1 + draw.below(3),
            tolerations: draw.below(2),
        }
    }
}

impl Container {
    fn main(name: &'static str, draw: &mut Draw) -> Container {
        Container {
            name,
            ports: 1 + usize::from(draw.chance(20)),
            args: draw.below(4),
            shared_env: draw.below(3),
            own_env: 3 + draw.below(3),
            referring_env: draw.below(3),
            has_probes: draw.chance(35),
            has_limits: draw.chance(35),
        }
    }

    fn sidecar(draw: &mut Draw) -> Container {
        Container {
            name: "mesh-proxy",
            ports: 1,
            args: 4 + draw.below(2),
            shared_env: 2,
            own_env: 2,
            referring_env: 2,
            has_probes: true,
            has_limits: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn as_many_workloads_as_there_are_shapes_have_all_of_them_and_no_two_alike() {
        let shapes: BTreeSet<String> = (0..SHAPES)
            .map(|index| {
                let shape = Shape::of(index);
                format!("{:?}", Shape { name: "", ..shape })
            })
            .collect();
        assert!(shapes.len() >= SHAPES - 2, "{} of {SHAPES}", shapes.len());
        assert_eq!((0..SHAPES).map(|index| Shape::of(index).name).collect::<BTreeSet<_>>().len(), SHAPES);
    }
}
