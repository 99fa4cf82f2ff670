//! The pure parts: which slices there are to be, which subsets, and which services select a pod.

use serde_json::{Value, json};

use super::hints::Closeness;
use super::mirror;
use super::ports::PortLists;
use super::reconcile::{ENDPOINTS_MAX, SlicePlan, WantedSlices, reconcile};
use super::subsets::{ADDRESSES_MAX, Address, are_same, pack, repack, truncate};
use super::topology::{NodeShare, ZoneShares};
use super::triggers::LastSeen;
use super::view::{AddressFamily, SelectedPod, Service};

fn service(change: Value) -> Service {
    let mut all = json!({
        "metadata": {
            "name": "web", "namespace": "default", "uid": "u", "labels": {"a": "b"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.9", "selector": {"app": "web"}, "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
        },
    });
    merge(&mut all, change);
    serde_json::from_value(all).expect("a service")
}

fn pod(name: &str, change: Value) -> SelectedPod {
    let mut all = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "n", "containers": [{"ports": [{"name": "web", "containerPort": 81, "protocol": "TCP"}]}]},
        "status": {"phase": "Running", "podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]},
    });
    merge(&mut all, change);
    serde_json::from_value(all).expect("a pod")
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn endpoint(number: usize) -> Value {
    json!({
        "addresses": [format!("10.1.{}.{}", number / 250, number % 250)],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": format!("p{number:04}"), "uid": "x"},
        "nodeName": "n", "zone": "z",
    })
}

fn plan(service: &Service, endpoints: impl IntoIterator<Item = usize>, existing: Vec<Value>) -> SlicePlan {
    let mut lists = PortLists::default();
    let list = lists.of(service, &pod("p", json!({}))).expect("few ports");
    let endpoints = endpoints.into_iter().map(endpoint).collect();
    let wanted = WantedSlices { family: AddressFamily::IPv4, groups: vec![(&lists.lists[list], endpoints)] };
    let nothing = ZoneShares::default();
    reconcile(service, vec![wanted], existing, Some("2026-01-01T00:00:00Z"), &nothing)
}

/// What is there once a plan is carried out.
fn done(existing: Vec<Value>, plan: SlicePlan) -> Vec<Value> {
    let name = |slice: &Value| slice["metadata"]["name"].as_str().expect("a name").to_owned();
    let gone: Vec<String> = plan.delete.iter().chain(&plan.update).map(name).collect();
    let mut left: Vec<Value> = existing.into_iter().filter(|slice| !gone.contains(&name(slice))).collect();
    left.extend(plan.update);
    left.extend(plan.create);
    left
}

fn lengths(slices: &[Value]) -> Vec<usize> {
    let mut all: Vec<usize> =
        slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_service_without_pods_has_one_slice_without_endpoints_and_it_stays() {
    let service = service(json!({}));
    let first = plan(&service, [], Vec::new());
    assert_eq!((first.create.len(), first.update.len(), first.delete.len()), (1, 0, 0));
    let slice = &first.create[0];
    assert_eq!((&slice["endpoints"], &slice["ports"]), (&json!([]), &json!([])));
    assert_eq!(
        slice["metadata"]["labels"],
        json!({
            "a": "b", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        })
    );
    assert_eq!(
        slice["metadata"]["annotations"],
        json!({"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"})
    );
    let there = done(Vec::new(), first);
    let second = plan(&service, [], there.clone());
    assert!(second.create.is_empty() && second.update.is_empty() && second.delete.is_empty(), "{second:?}");
    // It becomes the first slice with endpoints, and that without any again.
    let third = plan(&service, [1], there.clone());
    assert_eq!((third.create.len(), third.update.len(), third.delete.len()), (0, 1, 0));
    assert_eq!(third.update[0]["metadata"]["name"], there[0]["metadata"]["name"]);
    let fourth = plan(&service, [], third.update);
    assert_eq!((fourth.create.len(), fourth.update.len(), lengths(&fourth.update)), (0, 1, vec![0]));
}

#[test]
fn slices_are_full_and_endpoints_stay_where_they_are() {
    let service = service(json!({}));
    let slices = done(Vec::new(), plan(&service, 0..250, Vec::new()));
    assert_eq!(lengths(&slices), [50, ENDPOINTS_MAX, ENDPOINTS_MAX]);
    let names: std::collections::BTreeSet<_> =
        slices.iter().map(|slice| slice["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 3, "each has a name of its own");
    let nothing = plan(&service, 0..250, slices.clone());
    assert!(nothing.create.is_empty() && nothing.update.is_empty() && nothing.delete.is_empty());

    // Ten more find room in the one that is not full.
    let more = plan(&service, 0..260, slices.clone());
    assert_eq!((more.create.len(), more.update.len(), lengths(&more.update)), (0, 1, vec![60]));
    // Ten that go leave a slice less full; that is filled up first.
    let fewer = plan(&service, (10..250).chain(300..305), slices.clone());
    assert_eq!((fewer.create.len(), lengths(&fewer.update)), (0, vec![95]));
    // A slice of which all go goes, and all ports of a service that are no more.
    let gone = plan(&service, 0..200, slices.clone());
    assert_eq!((gone.delete.len(), gone.update.len()), (1, 0));
    let mut lists = PortLists::default();
    let other =
        self::service(json!({"spec": {"ports": [{"name": "x", "protocol": "UDP", "targetPort": 1}]}}));
    let list = lists.of(&other, &pod("p", json!({}))).expect("few");
    let wanted =
        WantedSlices { family: AddressFamily::IPv4, groups: vec![(&lists.lists[list], vec![endpoint(1)])] };
    let plan = reconcile(&other, vec![wanted], slices, None, &ZoneShares::default());
    assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (0, 1, 2));
    assert!(plan.update[0]["metadata"]["annotations"].as_object().is_some_and(|none| none.is_empty()));
}

#[test]
fn slices_of_another_service_of_the_name_go_and_labels_are_followed() {
    let old = service(json!({"metadata": {"uid": "before"}}));
    let slices = done(Vec::new(), plan(&old, 0..2, Vec::new()));
    let new = plan(&service(json!({})), 0..2, slices.clone());
    assert_eq!((new.create.len(), new.update.len(), new.delete.len()), (1, 0, 1));
    let labelled = plan(&service(json!({"metadata": {"uid": "before", "labels": {"a": "c"}}})), 0..2, slices);
    assert_eq!(labelled.update.len(), 1);
    assert_eq!(labelled.update[0]["metadata"]["labels"]["a"], "c");
    let ending = service(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(plan(&ending, 0..2, Vec::new()).create.is_empty());
}

#[test]
fn hints_are_given_where_traffic_is_to_stay_close_and_taken_away_again() {
    let close = service(json!({"spec": {"trafficDistribution": "PreferSameNode"}}));
    let slices = done(Vec::new(), plan(&close, 0..1, Vec::new()));
    let hints = json!({"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]});
    assert_eq!(slices[0]["endpoints"][0]["hints"], hints);
    assert!(plan(&close, 0..1, slices.clone()).update.is_empty());
    let zone = plan(&service(json!({"spec": {"trafficDistribution": "PreferClose"}})), 0..1, slices.clone());
    assert_eq!(zone.update[0]["endpoints"][0]["hints"], json!({"forZones": [{"name": "z"}]}));
    let anywhere = plan(&service(json!({})), 0..1, slices);
    assert_eq!(anywhere.update[0]["endpoints"][0].get("hints"), None);
    let automatic = json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": "Auto"}}, "spec": {"trafficDistribution": "PreferClose"}});
    assert_eq!(Closeness::of(&service(automatic)), Closeness::Automatic);
}

/// Slices of a service that leaves its hints to the server, where zones have so many processors. Endpoints
/// are in zones.
fn plan_near(zones: &[(&str, u64)], endpoints: &[&str], existing: Vec<Value>) -> SlicePlan {
    let automatic = json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": "Auto"}}});
    let service = service(automatic);
    let mut lists = PortLists::default();
    let list = lists.of(&service, &pod("p", json!({}))).expect("few ports");
    let endpoints = endpoints.iter().enumerate().map(|(number, zone)| {
        let mut endpoint = endpoint(number);
        endpoint["zone"] = if zone.is_empty() { Value::Null } else { json!(zone) };
        endpoint
    });
    let groups = vec![(&lists.lists[list], endpoints.collect())];
    let wanted = vec![WantedSlices { family: AddressFamily::IPv4, groups }];
    let shares = ZoneShares::of(zones.iter().map(|(zone, cpu)| NodeShare::Of((*zone).to_owned(), *cpu)));
    reconcile(&service, wanted, existing, None, &shares)
}

/// In which zone endpoints are, and for which.
fn hints(slices: &[Value]) -> Vec<String> {
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let of = |endpoint: &Value| match endpoint["hints"]["forZones"][0]["name"].as_str() {
        Some(zone) => format!("{}>{zone}", endpoint["zone"].as_str().unwrap_or_default()),
        None => String::new(),
    };
    let mut all: Vec<String> = endpoints.map(of).collect();
    all.sort();
    all
}

#[test]
fn zones_are_led_to_as_many_endpoints_as_they_have_of_the_processors() {
    const EVEN: [(&str, u64); 2] = [("a", 2_000), ("b", 2_000)];
    let first = plan_near(&EVEN, &["a", "a", "a", "b"], Vec::new());
    assert_eq!(first.told, [(AddressFamily::IPv4, Ok(()))]);
    let slices = done(Vec::new(), first);
    assert_eq!(hints(&slices), ["a>a", "a>a", "a>b", "b>b"]);
    let again = plan_near(&EVEN, &["a", "a", "a", "b"], slices.clone());
    assert!(again.update.is_empty() && again.told[0].1.is_ok(), "what is right stays");
    // One zone has three times what the other has.
    let other = plan_near(&[("a", 6_000), ("b", 2_000)], &["a", "a", "a", "b"], slices.clone());
    assert_eq!(hints(&done(slices.clone(), other)), ["a>a", "a>a", "a>a", "b>b"]);
    for (zones, endpoints, why) in [
        (&EVEN[..], &["a"][..], "Insufficient number of endpoints (1 endpoints, 2 zones)"),
        (
            &EVEN[..1],
            &["a", "a"],
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes",
        ),
        (&EVEN, &["a", "", "b", "b"], "One or more endpoints do not have a zone specified"),
        (
            &[("a", 9_900), ("b", 100)],
            &["a", "b"],
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (2 \
             endpoints, 2 zones)",
        ),
    ] {
        let plan = plan_near(zones, endpoints, slices.clone());
        assert_eq!(plan.told, [(AddressFamily::IPv4, Err(why.to_owned()))]);
        let left = hints(&done(slices.clone(), plan));
        assert!(left.iter().all(String::is_empty), "{why}: {left:?}");
    }
    // Who does not ask any more has none.
    let plan = plan(&service(json!({})), 0..4, slices.clone());
    assert!(plan.told.is_empty());
    assert!(hints(&done(slices, plan)).iter().all(String::is_empty));
    assert_eq!(ZoneShares::of([NodeShare::Of("a".into(), 1), NodeShare::Unknown]), ZoneShares::default());
}

#[test]
fn ports_are_numbers_or_what_pods_call_so() {
    let named = service(json!({"spec": {"ports": [
        {"name": "a", "protocol": "TCP", "targetPort": "web", "appProtocol": "h2c"},
        {"name": "b", "protocol": "UDP", "targetPort": "web"},
        {"name": "c", "protocol": "TCP", "targetPort": "side"},
    ]}}));
    let mut lists = PortLists::default();
    let first = lists.of(&named, &pod("p", json!({}))).expect("few");
    let sidecar = json!({"spec": {"initContainers": [
        {"ports": [{"name": "web", "containerPort": 9, "protocol": "TCP"}]},
        {"restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 7, "protocol": "TCP"}]},
    ]}});
    let second = lists.of(&named, &pod("q", sidecar)).expect("few");
    assert_eq!(lists.of(&named, &pod("r", json!({}))).expect("few"), first);
    let a = json!({"name": "a", "port": 81, "protocol": "TCP", "appProtocol": "h2c"});
    assert_eq!(lists.lists[first].ports, std::slice::from_ref(&a));
    assert_eq!(lists.lists[second].ports, [a, json!({"name": "c", "port": 7, "protocol": "TCP"})]);
}

#[test]
fn addresses_are_of_their_family_and_well_written() {
    let ips = json!({"status": {"podIPs": [{"ip": "010.0.0.1"}, {"ip": "fd00:0::1"}, {"ip": "::ffff:1.2.3.4"}, {"ip": "x"}]}});
    let pod = pod("p", ips);
    assert_eq!(pod.addresses(AddressFamily::IPv4).collect::<Vec<_>>(), ["10.0.0.1", "1.2.3.4"]);
    assert_eq!(pod.addresses(AddressFamily::IPv6).collect::<Vec<_>>(), ["fd00::1"]);
    for (spec, want) in [
        (json!({"ipFamilies": ["IPv6", "IPv4"]}), vec![AddressFamily::IPv4, AddressFamily::IPv6]),
        (json!({"ipFamilies": null, "clusterIP": "fd00::2"}), vec![AddressFamily::IPv6]),
        (json!({"ipFamilies": null, "clusterIP": "None"}), vec![AddressFamily::IPv4, AddressFamily::IPv6]),
    ] {
        assert_eq!(AddressFamily::of_service(&service(json!({"spec": spec}))), want);
    }
}

#[test]
fn subsets_have_each_port_and_address_as_seldom_as_can_be() {
    let named = service(json!({"spec": {"ports": [
        {"name": "", "protocol": "TCP", "targetPort": 80}, {"name": "b", "protocol": "TCP", "targetPort": "side"},
    ]}}));
    let mut lists = PortLists::default();
    let plain = lists.of(&named, &pod("p", json!({}))).expect("few");
    let both = json!({"spec": {"containers": [{"ports": [{"name": "side", "containerPort": 7, "protocol": "TCP"}]}]}});
    let both = lists.of(&named, &pod("q", both)).expect("few");
    let address = |ip: &str, is_ready| Address { value: json!({"ip": ip}), is_ready };
    let groups = vec![
        (&lists.lists[plain], vec![address("1.1.1.3", false), address("1.1.1.1", true)]),
        (&lists.lists[both], vec![address("1.1.1.2", true)]),
    ];
    let packed = pack(groups).expect("few");
    let want = json!([
        {"addresses": [{"ip": "1.1.1.2"}], "ports": [{"name": "b", "port": 7, "protocol": "TCP"}]},
        {
            "addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "notReadyAddresses": [{"ip": "1.1.1.3"}],
            "ports": [{"port": 80, "protocol": "TCP"}],
        },
    ]);
    assert!(are_same(&json!(packed), &want), "{packed:?}");
    assert!(!are_same(&json!(packed), &json!([])));
}

#[test]
fn of_too_many_addresses_those_that_are_not_ready_go_first() {
    let addresses = |from: usize, count: usize| {
        (from..from + count).map(|number| json!({"ip": number})).collect::<Vec<_>>()
    };
    let mut few = vec![json!({"addresses": addresses(0, ADDRESSES_MAX)})];
    assert!(!truncate(&mut few));
    let mut subsets = vec![
        json!({"addresses": addresses(0, 600), "notReadyAddresses": addresses(600, 300)}),
        json!({"notReadyAddresses": addresses(0, 900)}),
    ];
    assert!(truncate(&mut subsets));
    let count = |subset: &Value, member: &str| subset[member].as_array().map_or(0, Vec::len);
    assert_eq!(count(&subsets[0], "addresses"), 600);
    assert_eq!(
        (count(&subsets[0], "notReadyAddresses"), count(&subsets[1], "notReadyAddresses")),
        (100, 300)
    );
    let mut ready = vec![json!({"addresses": addresses(0, 1_500), "notReadyAddresses": addresses(0, 9)})];
    assert!(truncate(&mut ready));
    assert_eq!((count(&ready[0], "addresses"), ready[0].get("notReadyAddresses")), (ADDRESSES_MAX, None));
}

#[test]
fn the_trigger_is_the_first_change_since_the_last_look() {
    let service = service(json!({}));
    let ready = |name: &str, at: &str| {
        pod(
            name,
            json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}]}}),
        )
    };
    let seconds = super::view::seconds;
    let first = LastSeen::of(&service, &[ready("a", "2026-01-01T00:00:07Z")]);
    assert_eq!(first.trigger(None), Some(seconds("2026-01-01T00:00:00Z")));
    assert_eq!(first.trigger(Some(&first)), None);
    let times = [("a", "2026-01-01T00:00:09Z"), ("b", "2026-01-01T00:00:08Z")];
    let second = LastSeen::of(&service, &times.map(|(name, at)| ready(name, at)));
    assert_eq!(second.trigger(Some(&first)), Some(seconds("2026-01-01T00:00:08Z")));
}

#[test]
fn endpoints_that_somebody_writes_are_mirrored_once_each() {
    let subset = |addresses: Value, not_ready: Value, ports: Value| json!({"addresses": addresses, "notReadyAddresses": not_ready, "ports": ports});
    let (a, b) = (json!({"ip": "1.1.1.1"}), json!({"ip": "1.1.1.2", "hostname": "h"}));
    let port = |number: i64| json!([{"port": number, "protocol": "TCP"}]);
    let endpoints = json!({
        "metadata": {
            "name": "own", "namespace": "default", "uid": "e", "labels": {"l": "v"},
            "annotations": {"kept": "", "endpoints.kubernetes.io/last-change-trigger-time": "t"},
        },
        "subsets": [
            subset(json!([a, b, {"ip": "fd00::1"}, {"ip": "x"}]), json!([]), port(80)),
            subset(json!([b, {"ip": "fd00::1"}]), json!([a]), port(81)),
        ],
    });
    let first = mirror::plan(&endpoints, Vec::new());
    assert_eq!((first.create.len(), first.update.len(), first.delete.len()), (4, 0, 0));
    let slice = |number: i64, family: &str| {
        let is = |slice: &&Value| slice["ports"][0]["port"] == number && slice["addressType"] == family;
        first.create.iter().find(is).expect("a slice").clone()
    };
    assert_eq!(slice(80, "IPv6")["endpoints"][0]["addresses"], json!(["fd00::1"]));
    let ready: Vec<bool> = slice(81, "IPv4")["endpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["conditions"]["ready"] == true)
        .collect();
    assert_eq!(ready, [true, false], "those that are ready come first");
    assert_eq!(slice(80, "IPv4")["ports"], json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    let meta = &slice(80, "IPv4")["metadata"];
    assert_eq!((&meta["labels"]["l"], &meta["annotations"]), (&json!("v"), &json!({"kept": ""})));

    let there = done(Vec::new(), first);
    let nothing = mirror::plan(&endpoints, there.clone());
    assert!(
        nothing.create.is_empty() && nothing.update.is_empty() && nothing.delete.is_empty(),
        "{nothing:?}"
    );
    let mut other = endpoints.clone();
    other["subsets"] =
        json!([subset(json!([a]), json!([]), port(80)), subset(json!([b]), json!([]), port(90))]);
    let second = mirror::plan(&other, there);
    assert_eq!((second.create.len(), second.update.len(), second.delete.len()), (0, 2, 2));
}

#[test]
fn subsets_that_share_their_addresses_become_one() {
    let a = json!({"ip": "1.1.1.1"});
    let one = |ports: Value| json!({"addresses": [a], "ports": ports});
    let packed = repack(
        &json!([one(json!([{"port": 1}])), one(json!([{"port": 2}])), {"notReadyAddresses": [{"ip": "1.1.1.2"}]}]),
    );
    let shapes: Vec<(usize, usize)> =
        packed.iter().map(|(ports, addresses)| (ports.len(), addresses.len())).collect();
    assert_eq!(shapes.iter().copied().collect::<std::collections::BTreeSet<_>>(), [(0, 1), (2, 1)].into());
}
