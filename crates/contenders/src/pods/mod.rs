//! The pods that scenarios write: about 8 KB of JSON as a cluster has them, a pure function of [`SEED`] and
//! the uid of the owner.
//!
//! In: the number of a workload. Out: its namespace, its ReplicaSet, and for each of its pods the body that
//! creates it and the patch of its status. The ReplicaSets have to exist: a garbage collector deletes what
//! has no living owner. Never: a field that the server would have to default; a clone: four dozen shapes of
//! workload, and in each pod its own name, addresses, node, container ids, tokens, times and restarts.
//!
//! What managedFields take in a cluster is in annotations ([`fields`]): servers are asked to let go
//! of their own, which differ by the way of a write, so that all store the same (`crate::load`).
//!
//! [`SEED`]: crate::draw::SEED

mod body;
mod fields;
mod shape;

use bytes::Bytes;

use crate::draw::{Draw, suffix};
use crate::template::Template;
use shape::Shape;

/// Namespaces that workloads are spread over: `bench-00` to `bench-39`, not evenly.
pub const NAMESPACES: usize = 40;
/// Nodes that pods run on.
pub const NODES: usize = 500;
/// Pods of one workload after the other, and again from the first. Their mean is 20.
const REPLICAS: [usize; 16] = [3, 40, 2, 12, 1, 24, 6, 100, 3, 8, 16, 2, 60, 5, 30, 8];

/// What the pods of a Deployment have in common.
#[derive(Debug)]
pub struct Workload {
    pub namespace: String,
    pub app: String,
    /// Name of the ReplicaSet, and what the names of its pods begin with.
    pub owner: String,
    pub replicas: usize,
    /// Number of its first pod.
    first: usize,
    index: usize,
    shape: Shape,
    create: Template,
    running: Template,
    restarted: Template,
}

/// A pod to create, and what is then known of it.
#[derive(Debug)]
pub struct Pod {
    pub name: String,
    pub body: Bytes,
    /// A merge patch of the subresource.
    pub status: Bytes,
}

/// Name of a namespace.
pub fn namespace(index: usize) -> String {
    format!("bench-{:02}", index % NAMESPACES)
}

/// Name of the node at `index`.
pub fn node(index: usize) -> String {
    format!("ip-10-{}-{}-{}.example.internal", index % 4, index / 4, index * 37 % 251 + 1)
}

/// Workloads that have the first `pods` pods; the last of them may have more.
pub fn workloads(pods: usize) -> usize {
    let cycle: usize = REPLICAS.iter().sum();
    let mut left = pods % cycle;
    let in_cycle = REPLICAS.iter().take_while(|replicas| {
        let is_needed = left > 0;
        left = left.saturating_sub(**replicas);
        is_needed
    });
    pods / cycle * REPLICAS.len() + in_cycle.count()
}

impl Workload {
    pub fn new(index: usize) -> Workload {
        let shape = Shape::of(index);
        let mut draw = Draw::of("workload", index as u64);
        let (cycle, at) = (index / REPLICAS.len(), index % REPLICAS.len());
        let first = cycle * REPLICAS.iter().sum::<usize>() + REPLICAS[..at].iter().sum::<usize>();
        let namespace = namespace(draw.below(NAMESPACES).min(draw.below(NAMESPACES * 2)));
        let app = format!("{}-{}", shape.name, draw.letters(3));
        let hash = draw.letters(10);
        let owner = format!("{app}-{index:x}-{hash}");
        let facts = body::Facts { namespace: &namespace, app: &app, owner: &owner, hash: &hash };
        let bodies = body::of(&shape, &facts, &mut draw);
        Workload {
            create: Template::of(&bodies.create),
            running: Template::of(&bodies.running),
            restarted: Template::of(&bodies.restarted),
            replicas: REPLICAS[at],
            namespace,
            app,
            owner,
            first,
            index,
            shape,
        }
    }

    /// The ReplicaSet, small: only its uid matters.
    pub fn replica_set(&self) -> Bytes {
        let labels = serde_json::json!({"app.kubernetes.io/name": self.app});
        let image = format!("registry.example.com/{}:v1", self.shape.name);
        let body = serde_json::json!({
            "kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": self.owner},
            "spec": {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}},
        });
        Bytes::from(body.to_string())
    }

    /// The pods of it that are among the first `size` of all.
    pub fn pods(&self, size: usize, owner: &str) -> impl Iterator<Item = Pod> {
        let count = size.saturating_sub(self.first).min(self.replicas);
        (0..count).map(move |ordinal| self.pod(ordinal, owner))
    }

    /// The pod at `ordinal`, owned by the ReplicaSet whose uid is `owner`.
    pub fn pod(&self, ordinal: usize, owner: &str) -> Pod {
        let index = self.first + ordinal;
        let name = format!("{}-{}", self.owner, suffix(self.index as u64, ordinal));
        let own = Own { index, name: &name, owner, began: self.began(ordinal) };
        let fill = |template: &Template| Bytes::from(template.fill(|field, out| own.write(field, out)));
        let status =
            if Draw::of("restarted", index as u64).chance(6) { &self.restarted } else { &self.running };
        let (body, status) = (fill(&self.create), fill(status));
        Pod { name, body, status }
    }

    /// When the pod at `ordinal` was made, in seconds since 2026 began: a rollout makes them one after the
    /// other.
    fn began(&self, ordinal: usize) -> u64 {
        let mut draw = Draw::of("rollout", self.index as u64);
        draw.number() % (200 * 86_400) + (ordinal as u64) * (3 + draw.number() % 20)
    }
}

/// What only one pod has.
struct Own<'a> {
    index: usize,
    name: &'a str,
    owner: &'a str,
    began: u64,
}

impl Own<'_> {
    /// Writes the value of a field: the same one wherever the same field stands in the pod.
    fn write(&self, field: &str, out: &mut String) {
        use std::fmt::Write as _;
        let mut draw = Draw::of(field, self.index as u64);
        let node = Draw::of("node", self.index as u64).below(NODES);
        let (kind, rest) = field.split_once(':').unwrap_or((field, ""));
        let number = || rest.split(':').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let _ = match kind {
            "name" => write!(out, "{}", self.name),
            "owner" => write!(out, "{}", self.owner),
            "node" => write!(out, "{}", self::node(node)),
            "host_ip" => write!(out, "10.{}.{}.{}", node % 4, node / 4, node * 37 % 251 + 1),
            "pod_ip" => {
                write!(out, "100.{}.{}.{}", 64 + node / 256, node % 256, draw.below(250) + 2)
            }
            "hex" => write!(out, "{}", draw.hex(number())),
            "letters" => write!(out, "{}", draw.letters(number())),
            "time" => write!(out, "{}", time(self.began + number() as u64 + draw.number() % 3)),
            "#below" => write!(out, "{}", draw.below(number()) + 1),
            "below" => write!(out, "{}", draw.below(number()) + 1),
            other => unreachable!("a template has no field {other}"),
        };
    }
}

/// RFC 3339, `seconds` after 2026 began; within that year.
fn time(seconds: u64) -> String {
    const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut day, second) = (seconds / 86_400 % 365, seconds % 86_400);
    let mut month = 0;
    while day >= DAYS[month] {
        day -= DAYS[month];
        month += 1;
    }
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("2026-{:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", month + 1, day + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::ratio::block_ratio;

    const OWNER: &str = "11111111-2222-4333-8444-555555555555";

    fn all(size: usize) -> Vec<(Arc<Workload>, Pod)> {
        let of = |index| {
            let workload = Arc::new(Workload::new(index));
            let pods: Vec<Pod> = workload.pods(size, OWNER).collect();
            pods.into_iter().map(move |pod| (workload.clone(), pod))
        };
        (0..workloads(size)).flat_map(of).collect()
    }

    #[test]
    fn workloads_have_exactly_the_pods_asked_for() {
        for size in [0, 1, 3, 4, 10, 320, 321, 1_000] {
            let count: usize =
                (0..workloads(size)).map(|index| Workload::new(index).pods(size, OWNER).count()).sum();
            assert_eq!(count, size);
        }
    }

    #[test]
    fn a_pod_names_the_replica_set_that_owns_it_and_fits_its_selector() {
        for (workload, pod) in all(60) {
            let (set, body): (Value, Value) = (
                serde_json::from_slice(&workload.replica_set()).unwrap(),
                serde_json::from_slice(&pod.body).unwrap(),
            );
            let named = &body["metadata"]["ownerReferences"][0];
            assert_eq!((&named["kind"], &named["name"]), (&set["kind"], &set["metadata"]["name"]));
            assert_eq!(
                (&named["uid"], &body["metadata"]["name"]),
                (&OWNER.into(), &pod.name.as_str().into())
            );
            for (label, value) in set["spec"]["selector"]["matchLabels"].as_object().unwrap() {
                assert_eq!(&body["metadata"]["labels"][label], value);
            }
            assert!(
                body["metadata"]["namespace"] == workload.namespace.as_str() && pod.name.len() <= 63,
                "{}",
                pod.name
            );
        }
    }

    #[test]
    fn pods_are_about_eight_kilobytes_and_of_many_sizes() {
        let sizes: Vec<usize> = all(960).iter().map(|(_, pod)| pod.body.len() + pod.status.len()).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((7_600..8_600).contains(&mean), "{mean}");
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least < 7_000 && *most > 10_000 && *most < 20_000, "{least} to {most}");
        assert!(sizes.iter().collect::<BTreeSet<_>>().len() > 200);
    }

    #[test]
    fn names_container_ids_and_addresses_are_their_own() {
        let all = all(960);
        let of = |find: &dyn Fn(&Value) -> &Value| -> BTreeSet<String> {
            let values = all.iter().map(|(_, pod)| {
                let status: Value = serde_json::from_slice(&pod.status).unwrap();
                find(&status["status"]).to_string()
            });
            values.collect()
        };
        assert_eq!(all.iter().map(|(_, pod)| &pod.name).collect::<BTreeSet<_>>().len(), 960);
        assert_eq!(of(&|status| &status["containerStatuses"][0]["containerID"]).len(), 960);
        assert!(of(&|status| &status["podIP"]).len() > 940);
        assert_eq!(of(&|status| &status["hostIP"]).len(), of(&|status| &status["hostIPs"]).len());
        assert!(of(&|status| &status["hostIP"]).len() > 300);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let (one, two) = (Workload::new(7).pod(5, OWNER), Workload::new(7).pod(5, OWNER));
        assert_eq!((&one.body, &one.status), (&two.body, &two.status));
        assert_ne!(one.body, Workload::new(7).pod(6, OWNER).body);
    }

    #[test]
    fn blocks_of_them_deflate_as_those_of_a_cluster_do() {
        let mut pods: Vec<(String, Bytes)> = all(960)
            .into_iter()
            .map(|(workload, pod)| {
                let body = [pod.body, pod.status].concat();
                (format!("{}/{}", workload.namespace, pod.name), Bytes::from(body))
            })
            .collect();
        pods.sort();
        let ratio = block_ratio(pods.iter().map(|(_, body)| &body[..]));
        assert!((7.0..11.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn times_are_of_the_calendar() {
        assert_eq!(time(0), "2026-01-01T00:00:00Z");
        assert_eq!(time(59 * 86_400 + 3_661), "2026-03-01T01:01:01Z");
        assert_eq!(time(364 * 86_400), "2026-12-31T00:00:00Z");
    }
}
