//! What one look at an object costs: by key, a field, as its type; where it is in plain form, and where it is
//! at rest.
//!
//! In: an informer that has both kinds. Out: CPU of each, as JSON. Owner: the thread that calls, whose CPU
//! alone is counted. Never: a look that the compiler could leave out.

use std::hint::black_box;
use std::time::Duration;

use forebay_informer::{Handle, Informer};
use forebay_object::Text;
use k8s_openapi::api::core::v1::Pod;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::Failed;

/// Looks at objects, spread over those of their kind; where there are fewer, each is looked at again.
const LOOKS: usize = 2_000;
/// Times that each of them is done by key, which takes too short to be measured a few times.
const ROUNDS: usize = 100;

/// Microseconds of CPU of each, by name, of what is plain (`hot`) and of what is at rest; null where nothing
/// is of that kind.
pub fn of(pods: &Informer<Pod>) -> Result<Value, Failed> {
    let all: Vec<Handle<Pod>> = pods.view()?.iter().collect();
    let is_hot = |pod: &Handle<Pod>| matches!(pod.body(), Ok(Text::Held(_)));
    let (hot, at_rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_hot);
    Ok(json!({"hot": kind(pods, &hot)?, "at rest": kind(pods, &at_rest)?}))
}

fn kind(pods: &Informer<Pod>, objects: &[Handle<Pod>]) -> Result<Value, Failed> {
    if objects.is_empty() {
        return Ok(Value::Null);
    }
    // Spread, so that neighbours in a block are not looked at one after the other.
    let spread = objects.iter().step_by(objects.len().div_ceil(LOOKS));
    let sample: Vec<&Handle<Pod>> = spread.cycle().take(LOOKS).collect();
    let keys: Vec<(String, String)> =
        sample.iter().map(|pod| (pod.namespace().to_owned(), pod.name().to_owned())).collect();
    let texts: Vec<Vec<u8>> = sample.iter().map(|pod| pod.to_json().expect("in memory")).collect();
    let get = each(keys.len() * ROUNDS, || {
        for (namespace, name) in (0..ROUNDS).flat_map(|_| &keys) {
            black_box(pods.view().ok().and_then(|view| view.get(namespace, name)));
        }
    });
    let field = each(keys.len(), || {
        for (namespace, name) in &keys {
            let pod = pods.view().ok().and_then(|view| view.get(namespace, name));
            black_box(pod.map(|pod| pod.field("status.phase").is_ok()));
        }
    });
    let bytes = each(sample.len(), || {
        for pod in &sample {
            black_box(pod.body().map_or(0, |body| body.len()));
        }
    });
    // What is decoded first finds cold caches and an allocator that has nothing yet.
    drop(texts.iter().map(|text| serde_json::from_slice::<Pod>(text)).collect::<Vec<_>>());
    // A handle of its own for each, so that nothing was decoded before.
    let fresh: Vec<Handle<Pod>> = sample.iter().map(|pod| pod.cast()).collect();
    let typed = each(fresh.len(), || {
        for pod in &fresh {
            black_box(pod.typed().is_ok());
        }
    });
    let mut decoded = Vec::with_capacity(texts.len());
    let serde = each(texts.len(), || {
        decoded.extend(texts.iter().map(|text| serde_json::from_slice::<Pod>(text)));
    });
    if let Some(error) = decoded.into_iter().find_map(Result::err) {
        return Err(error.into());
    }
    Ok(json!({
        "objects": objects.len(), "get": get, "get and field": field, "bytes": bytes, "typed": typed, "serde": serde,
    }))
}

/// Microseconds of this thread's CPU that one of `count` in `work` takes.
fn each(count: usize, work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    (cpu() - before).as_secs_f64() * 1e6 / count as f64
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
