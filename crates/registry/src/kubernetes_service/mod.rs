//! The `kubernetes` Service, by which what runs in a cluster finds this server, and the default ServiceCIDR.
//!
//! In: the configured ranges and endpoint. Out: ServiceCIDR, Service, Endpoints and EndpointSlice of the name
//! `kubernetes`, made at the start and kept right from then on; claims repaired now and then. Owner: one
//! task, which looks at caches and writes only what is wrong.
//!
//! Endpoints and EndpointSlice are written past validation: a server that is known by its loopback address
//! only leads there. With several servers on one store they lead to all of them (`advertised.rs`).
//!
//! Source: kubernetes v1.36.3 `controlplane/{controller/{kubernetesservice,defaultservicecidr},reconcilers}`.

pub(crate) mod advertised;
pub(crate) mod state;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::store::{Decision, Mode};
use serde_json::{Value, json};

use crate::apply;
use crate::context::Context;
use crate::create;
use crate::limits::{REPAIR_PERIOD, REPAIR_RETRY_PAUSE, SERVICE_LOOK_PERIOD};
use crate::new_object;
use crate::owners;
use crate::ruled::Ruled as _;
use crate::services::{NAME, NAMESPACE};
use forebay_api::Body;
use forebay_catalog::Target;
use forebay_service_claims::{address_ranges, repair, typed, unreadable};
use forebay_strategy as strategy;

const PORT: u16 = 443;

/// Who says of the default ServiceCIDR that it is ready.
const CIDR_MANAGER: &str = "kubernetes-service-cidr-controller";

/// Sees to the default ServiceCIDR and the `kubernetes` Service, and goes on to. A new store has both when it
/// returns; what is there already is repaired behind its back.
pub(crate) async fn start_services(context: &Arc<Context>) {
    let store = context.built_in("", "v1", "services");
    let known = store.is_ok_and(|store| store.cached(&store.key(NAMESPACE, NAME)).is_some());
    let settled = async {
        settle_kubernetes(context, if known { Part::AllButClaims } else { Part::All }).await;
        if let Err(status) = warn_of_other_ranges(context).await {
            tracing::warn!(why = status.message, "the ServiceCIDRs cannot be read yet");
        }
    };
    // What is cut off here is done again by the task, which waits for as long as it takes.
    tokio::select! {
        biased;
        () = settled => {}
        why = context.hindered() => tracing::error!(why, "what leads to this server is settled later"),
    }
    context.tasks.spawn("kubernetes service", keep_kubernetes(context.clone()));
}

/// Once the default ServiceCIDR exists, it decides and not the flag.
async fn warn_of_other_ranges(context: &Arc<Context>) -> Result<(), Status> {
    let known = address_ranges(&context.claims).await?;
    let ranges = context.config.services.cluster_ip_ranges.iter();
    // Few: ranges that the flag names.
    for range in ranges.filter(|range| !known.iter().any(|known| known.covers(range))) {
        tracing::warn!(%range, "no ServiceCIDR has this range: services get no addresses of it");
    }
    Ok(())
}

async fn keep_kubernetes(context: Arc<Context>) {
    let mut next_repair = context.clock.now() + REPAIR_PERIOD;
    loop {
        let repaired = context.claims.is_repaired();
        if !repaired || context.clock.now() >= next_repair {
            next_repair = context.clock.now() + REPAIR_PERIOD;
            settle_kubernetes(&context, Part::All).await;
        } else {
            settle_kubernetes(&context, Part::AllButClaims).await;
        }
        let again = if context.claims.is_repaired() { SERVICE_LOOK_PERIOD } else { REPAIR_RETRY_PAUSE };
        tokio::select! {
            () = context.clock.sleep(again) => {}
            () = context.kubernetes.look.notified() => {}
        }
    }
}

/// Makes right what is not. What fails is tried again the next time.
async fn settle_kubernetes(context: &Arc<Context>, part: Part) {
    let settled = async {
        let all = tokio::join!(settle_default_cidr(context), settle_where(context));
        all.0.and(all.1)?;
        if part == Part::All {
            let repaired = repair(&context.claims, &**context).await?;
            tracing::debug!(?repaired, "claims of services");
        }
        let done = settle_service(context).await;
        done.inspect(|()| context.kubernetes.target_settled.store(true, Ordering::Relaxed))
    };
    if let Err(status) = settled.await {
        tracing::warn!(why = status.message, "the kubernetes Service is not as it should be yet");
    }
}

/// The ServiceCIDR of the configured ranges. One that is there stays, unless a second family is added to it.
async fn settle_default_cidr(context: &Arc<Context>) -> Result<(), Status> {
    let ranges: Vec<String> =
        context.config.services.cluster_ip_ranges.iter().map(ToString::to_string).collect();
    let wanted = json!({
        "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": { "name": NAME },
        "spec": { "cidrs": ranges },
    });
    settle(context, ("networking.k8s.io", "servicecidrs"), wanted, |found| {
        let known = found["spec"]["cidrs"].as_array().map_or(&[][..], Vec::as_slice);
        if known.len() == 1 && ranges.len() == 2 && known[0] == ranges[0] {
            found["spec"]["cidrs"] = json!(ranges);
        }
    })
    .await?;
    say_ready(context, &json!(ranges)).await
}

/// Says of the ServiceCIDR of the configured ranges that it is ready, unless something is said of it.
async fn say_ready(context: &Arc<Context>, ranges: &Value) -> Result<(), Status> {
    let of_object = target(context, "networking.k8s.io", "servicecidrs")?;
    let store = of_object.served.stored()?;
    let state = context.fresh(&store).await?;
    let Some(found) = state.get(&store.key(of_object.namespace(), NAME)) else { return Ok(()) };
    let found = of_object.served.to_value(found)?;
    let is_told = found["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
    let is_leaving = found["metadata"]["deletionTimestamp"].is_string();
    if is_told || is_leaving || found["spec"]["cidrs"] != *ranges {
        return Ok(());
    }
    let config = json!({
        "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": { "name": NAME },
        "status": { "conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": context.now_rfc3339(),
            "message": "Kubernetes default Service CIDR is ready",
        }] },
    });
    let of_status = Target { name: Some(NAME.into()), subresource: Some("status".into()), ..of_object };
    let options =
        PatchOptions { field_manager: CIDR_MANAGER.to_owned(), force: true, ..PatchOptions::default() };
    apply::apply(context, &of_status, &Body::Value(config), &options, None).await.map(drop)
}

/// The Service, at the first address of the first range.
async fn settle_service(context: &Arc<Context>) -> Result<(), Status> {
    let Some((_, target_port)) = context.config.services.endpoint else { return Ok(()) };
    let Some(range) = context.config.services.cluster_ip_ranges.first() else { return Ok(()) };
    let ports = json!([{ "name": "https", "protocol": "TCP", "port": PORT, "targetPort": target_port }]);
    let store = context.built_in("", "v1", "services")?;
    let (state, key) = (context.fresh(&store).await?, store.key(NAMESPACE, NAME));
    if unreadable::is_at(&key, &state, &store).await? {
        return Ok(());
    }
    if let Some(found) = state.get(&key) {
        // Upstream leaves it as it is, and so in the hands of those who add to it; a port of ours that has
        // moved is followed.
        let stale = typed(found)?["spec"]["ports"].as_array().is_some_and(|ports| {
            ports.len() == 1 && ports[0]["name"] == "https" && ports[0]["targetPort"] != target_port
        });
        if !stale || leaves_others(context, &context.kubernetes.target_settled) {
            return Ok(());
        }
        let wanted = json!({ "kind": "Service", "apiVersion": "v1" });
        return settle(context, ("", "services"), named(wanted), |found| {
            found["spec"]["ports"][0]["targetPort"] = target_port.into();
        })
        .await;
    }
    let service = json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": { "name": NAME, "labels": { "component": "apiserver", "provider": "kubernetes" } },
        "spec": {
            "type": "ClusterIP", "clusterIP": range.first().to_string(), "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None", "ports": ports,
        },
    });
    let target = target(context, "", "services")?;
    match create::create(context, &target, &Body::Value(service), &CreateOptions::default()).await {
        Err(status) if status.reason != Reason::AlreadyExists => Err(status),
        _ => Ok(()),
    }
}

/// Where the Service leads to: here, and to the other servers.
async fn settle_where(context: &Arc<Context>) -> Result<(), Status> {
    let Some((own, _)) = context.config.services.endpoint else { return Ok(()) };
    // Before its turn, for which the lease and the words to the neighbours wait as well.
    for (group, resource) in [("", "endpoints"), ("discovery.k8s.io", "endpointslices")] {
        context.built_in(group, "v1", resource)?.cacher.wait_ready().await;
    }
    let Some(_turn) = context.kubernetes.turn_to_stay().await else { return Ok(()) };
    let addresses = advertised::advertise(context, own).await?;
    settle_advertised(context, &addresses).await?;
    context.kubernetes.ports_settled.store(true, Ordering::Relaxed);
    Ok(())
}

/// Makes the Service lead to `addresses`. Their order is nobody's concern: two servers would not agree on it.
pub(super) async fn settle_advertised(context: &Arc<Context>, addresses: &[String]) -> Result<(), Status> {
    settle_endpoints(context, addresses).await?;
    settle_endpoint_slice(context, addresses).await
}

async fn settle_endpoints(context: &Arc<Context>, addresses: &[String]) -> Result<(), Status> {
    let Some((_, port)) = context.config.services.endpoint else { return Ok(()) };
    let ips: Vec<Value> = addresses.iter().map(|address| json!({ "ip": address })).collect();
    let subsets = json!([{
        "addresses": ips,
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    }]);
    let wanted = json!({ "kind": "Endpoints", "apiVersion": "v1", "subsets": subsets });
    settle(context, ("", "endpoints"), named(wanted), |found| {
        found["metadata"]["labels"]["endpointslice.kubernetes.io/skip-mirror"] = "true".into();
        let is_one = found["subsets"].as_array().is_some_and(|all| all.len() == 1);
        let same = is_one && same_addresses(&found["subsets"][0], "/addresses", &ips);
        if !same || !has_ports(context, &found["subsets"][0]) {
            found["subsets"] = subsets.clone();
        }
    })
    .await
}

async fn settle_endpoint_slice(context: &Arc<Context>, addresses: &[String]) -> Result<(), Status> {
    let Some((own, port)) = context.config.services.endpoint else { return Ok(()) };
    let endpoint = |address: &String| json!({ "addresses": [address], "conditions": { "ready": true } });
    let is_v6 = matches!(own, IpAddr::V6(_));
    // A slice is of one family.
    let of_family = addresses.iter().filter(|address| address.contains(':') == is_v6);
    let endpoints: Vec<Value> = of_family.map(endpoint).collect();
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    let family = if is_v6 { "IPv6" } else { "IPv4" };
    let wanted = json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": family,
    });
    settle(context, ("discovery.k8s.io", "endpointslices"), named(wanted), |found| {
        found["addressType"] = family.into();
        found["metadata"]["labels"]["kubernetes.io/service-name"] = NAME.into();
        if !same_addresses(found, "/endpoints", &endpoints) || !has_ports(context, found) {
            found["endpoints"] = json!(endpoints);
            found["ports"] = ports.clone();
        }
    })
    .await
}

/// Whether `of` has the ports that it should have. Those of another server are left as they are, as upstream
/// does but at its start.
fn has_ports(context: &Arc<Context>, of: &Value) -> bool {
    let Some((_, port)) = context.config.services.endpoint else { return true };
    let Some([known]) = of["ports"].as_array().map(Vec::as_slice) else { return false };
    let is_others = leaves_others(context, &context.kubernetes.ports_settled);
    known["name"] == "https" && known["protocol"] == "TCP" && (known["port"] == port || is_others)
}

/// Whether a port that is not this server's is taken for another one's: once its own was written, where there
/// may be others. They would write in turn for ever.
fn leaves_others(context: &Arc<Context>, settled: &AtomicBool) -> bool {
    settled.load(Ordering::Relaxed) && !context.is_alone()
}

fn target(context: &Arc<Context>, group: &str, resource: &str) -> Result<Target, Status> {
    let served = context.catalog().resource(group, "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let namespace = served.namespaced.then(|| NAMESPACE.to_string());
    Ok(Target::of_server(served, namespace, None))
}

/// Makes the object called `kubernetes` what `change` makes of it, or of `wanted` when there is none. Nothing
/// is written where nothing is to be changed. One that cannot be read stays as it is: whoever read it has
/// named it.
async fn settle(
    context: &Arc<Context>,
    (group, resource): (&str, &str),
    wanted: Value,
    change: impl Fn(&mut Value),
) -> Result<(), Status> {
    let target = target(context, group, resource)?;
    let (served, store) = (&target.served, target.served.stored()?);
    let key = store.key(target.namespace(), NAME);
    let state = context.fresh(&store).await?;
    if unreadable::is_at(&key, &state, &store).await? {
        return Ok(());
    }
    if let Some(found) = state.get(&key) {
        let found = served.to_value(found)?;
        let mut changed = found.clone();
        change(&mut changed);
        if changed == found {
            return Ok(());
        }
    }
    let now = context.now_rfc3339();
    let judge = |current: Option<&forebay_catalog::store::Current>| {
        let Some(current) = current else {
            let mut new = wanted.clone();
            new_object::fill_in(context, &target, &mut new);
            change(&mut new);
            owners::by_server(context, served, (owners::SERVER, ""), None, &mut new)?;
            return Ok(Decision::Put { value: served.encode(new)?, ttl: None });
        };
        let old = served.to_value(&current.object)?;
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return Ok(Decision::Keep);
        }
        let status = new.get("status").cloned();
        strategy::prepare_update(
            &served.rules(),
            None,
            &mut new,
            &old,
            &strategy::Context { now: &now, user: None },
        );
        if let Some(status) = status {
            new["status"] = status;
        }
        owners::by_server(context, served, (owners::SERVER, ""), Some(&old), &mut new)?;
        Ok(Decision::Put { value: served.encode(new)?, ttl: None })
    };
    store.guarded_update(&key, Mode::Commit, judge).await.map(drop)
}

/// What one look is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    /// Without reading every Service and every claim.
    AllButClaims,
}

/// Whether what is at `place` of `found` are `wanted`, in whatever order.
fn same_addresses(found: &Value, place: &str, wanted: &[Value]) -> bool {
    let found = found.pointer(place).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    found.len() == wanted.len() && wanted.iter().all(|one| found.contains(one))
}

fn named(mut object: Value) -> Value {
    object["metadata"] = json!({ "name": NAME, "namespace": NAMESPACE });
    object
}

#[cfg(test)]
mod tests {
    use forebay_embedded::{Engine, Options};
    use forebay_rt::{Clock, Random, Tasks};
    use forebay_watchcache::History;

    use std::time::Duration;

    use super::*;
    use crate::Registry;
    use crate::config::{Config, ServicesConfig};

    /// Where the Service leads to, as the store has it.
    async fn target_port(server: &Registry) -> Value {
        let store = server.0.built_in("", "v1", "services").expect("served");
        let found = store.live(&store.key(NAMESPACE, NAME)).await.expect("read").expect("made");
        typed(&found.object).expect("a Service")["spec"]["ports"][0]["targetPort"].clone()
    }

    #[tokio::test]
    async fn servers_on_one_host_do_not_take_the_port_of_the_service_from_each_other() {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let (engine, tasks) = (Engine::open_in_memory(options).expect("opens"), Tasks::new());
        let server = |port: u16| {
            let endpoint = Some(([192, 0, 2, 1].into(), port));
            let services = ServicesConfig { endpoint, ..ServicesConfig::default() };
            let history = History::Shared { check_every: Duration::from_secs(3_600) };
            let config = Config { services, history, ..Config::default() };
            let random = Random::seeded(u64::from(port));
            Registry::new(config, engine.clone(), clock.clone(), random, tasks.clone())
        };
        let (first, second) = (server(6443), server(7443));
        first.start().await.expect("starts");
        assert_eq!(target_port(&first).await, 6443);
        second.start().await.expect("starts");
        assert_eq!(
            target_port(&first).await,
            7443,
            "followed at the start, as if it were one that has moved"
        );
        for server in [&first, &second, &first] {
            settle_kubernetes(&server.0, Part::AllButClaims).await;
            assert_eq!(target_port(server).await, 7443, "whoever looks next");
        }
        assert!(tasks.stop(Duration::from_secs(60)).await, "every task ends");
    }
}
