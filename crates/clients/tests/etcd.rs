//! Ours on a real etcd: alone, and beside a real kube-apiserver on the same objects.

#[path = "etcd/broken.rs"]
mod broken;
#[path = "etcd/spread.rs"]
mod spread;

use std::time::Duration;

use forebay_clients::etcd::{Cluster, ClusterToken, Security, Series};
use forebay_clients::https::Call;
use forebay_clients::relay::{Relay, Trouble};
use forebay_clients::wait::{timed, until};
use forebay_clients::{ControlPlane, DEFINITION, Detector, Implementation, Scenario, Session, needs};

fn start(implementation: Implementation, cluster: &Cluster) -> ControlPlane {
    ControlPlane::start_on(implementation, cluster).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn fifty_informers_across_kills_on_etcd_ask_for_nothing_again() {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let cluster = Cluster::start(1, Security::Mutual).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    scenario.run("TestFiftyInformersAcrossKills", &mut server, Detector::Off);
}

/// What goes wrong, one after the other; see the scenario. In the end history is gone that nobody here has
/// had.
const FAULTS: &str = "move-leader kill-leader restart hold-member release hold-peers release part release delay cut-often \
                      release defragment stall! resume full! room leaderless! regain hold-all! cut-off";

#[test]
fn fifty_informers_across_faults_of_etcd_lose_nothing_and_ask_for_nothing_again() {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let mut cluster = Cluster::start_relayed(Series::V3_6, 3).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    let other = ControlPlane::start_told(cluster.direct_flags()).expect("starts");
    server.tell("FOREBAY_TEST_OTHER", other.kubeconfig().display().to_string());
    server.tell("FOREBAY_TEST_FAULTS", FAULTS.to_owned());
    server.tell("FOREBAY_TEST_HOLE", "yes".to_owned());
    let (mut killed, mut sent_bytes) = (0, 0);
    scenario.run_with("TestInformersAcrossFaultsOfEtcd", &mut server, Detector::Off, |order| {
        let clients =
            |trouble| (0..3).try_for_each(|n| cluster.relays(n).map(|relays| relays.clients.set(trouble)));
        let sent =
            || (0..3).filter_map(|n| cluster.relays(n).ok()).map(|r| r.clients.sent_bytes()).sum::<u64>();
        match order {
            "@move-leader" => cluster.move_leader(),
            "@kill-leader" => {
                killed = cluster.leader()?;
                cluster.kill(killed)
            }
            "@restart" => cluster.restart(killed),
            // Which of them the server speaks to, it chose itself: this is the one that leads, and where all
            // watches are next.
            "@hold-member" => {
                cluster.relays(cluster.leader()?)?.clients.set(Trouble::Hold);
                Ok(())
            }
            // Others cannot reach it, and it reaches them.
            "@hold-peers" => {
                cluster.relays(cluster.leader()?)?.peers.set(Trouble::Hold);
                Ok(())
            }
            // Neither reaches the other.
            "@part" => cluster.part(cluster.leader()?),
            // Not one leads: watches are ended, which is not to say that anything was missed
            // (kubernetes#111387).
            "@leaderless" => cluster.leave_alone(cluster.most_watched()?),
            "@regain" => cluster.restart_all(),
            "@delay" => clients(Trouble::Delay(Duration::from_millis(25), Duration::from_millis(125))),
            "@cut-often" => clients(Trouble::CutAfter(50_000)),
            "@release" => {
                (0..3).try_for_each(|n| cluster.relays(n).map(|relays| relays.peers.set(Trouble::None)))?;
                clients(Trouble::None)
            }
            "@defragment" => cluster.defragment(),
            "@stall" => {
                sent_bytes = sent();
                (0..3).try_for_each(|n| cluster.pause(n))
            }
            "@resume" => {
                let asked = sent() - sent_bytes;
                println!("figure: {asked} bytes sent to an etcd that stood still, for 300 consistent lists");
                if asked > STALLED_BYTES_MAX {
                    return Err(format!("{asked} bytes were sent to an etcd that stands still"));
                }
                (0..3).try_for_each(|n| cluster.resume(n))
            }
            "@full" => cluster.alarm(true),
            "@room" => cluster.alarm(false),
            "@hold-all" => clients(Trouble::Hold),
            "@compact" => {
                cluster.compact(cluster.revision()?)?;
                clients(Trouble::Refuse)?;
                clients(Trouble::None)
            }
            "@cut-off" => {
                clients(Trouble::Refuse)?;
                clients(Trouble::None)
            }
            order => Err(format!("nobody knows {order}")),
        }
    });
}

/// What the server asks etcd's keys for by itself within one round: every ten seconds it looks whether etcd
/// answers and renews the lease that says that it is there.
const ITS_OWN_CALLS_MAX: u64 = 12;

/// It hears other servers every three seconds and tells them of itself every five, so that on a slow machine
/// no round is without a call of its own.
const ITS_OWN_CALLS_PERIOD: Duration = Duration::from_secs(1);

/// Between two quorum reads while several ask.
const BARRIER_PERIOD: Duration = Duration::from_millis(10);

#[test]
fn a_thousand_lists_at_once_cost_etcd_a_quorum_read_in_ten_milliseconds_and_none_where_they_need_none() {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    let (mut before, mut rounds) = (0, Vec::new());
    scenario.run_with("TestListsAtOnce", &mut server, Detector::Off, |order| {
        let calls = cluster.calls()?;
        let mut words = order.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("@begin"), ..) => before = calls,
            (Some("@asked"), Some(way), Some(micros)) => {
                let took = Duration::from_micros(micros.parse().map_err(|_| "no time")?);
                rounds.push((way.to_owned(), calls - before, took));
            }
            _ => return Err(format!("nobody knows {order}")),
        }
        Ok(())
    });
    for way in ["consistent", "any", "not-older"] {
        let periods = |took: &Duration, of: Duration| (took.as_micros() / of.as_micros() + 1) as u64;
        let own = |took: &Duration| periods(took, ITS_OWN_CALLS_PERIOD);
        let max = |took: &Duration| match way {
            "consistent" => own(took) + periods(took, BARRIER_PERIOD),
            _ => own(took),
        };
        let of: Vec<_> = rounds.iter().filter(|(of, ..)| of == way).collect();
        let Some((_, calls, took)) = of.iter().min_by_key(|(_, calls, _)| calls) else {
            panic!("{rounds:?}")
        };
        println!(
            "figure: {calls} calls of etcd's keys for 1,000 {way} lists at once, in {} ms",
            took.as_millis()
        );
        assert!(*calls <= max(took), "{way}: {calls} of {}: {rounds:?}", max(took));
        for (_, calls, took) in &of {
            assert!(*calls <= max(took) + ITS_OWN_CALLS_MAX, "{way}: {rounds:?}");
        }
        assert!(way != "consistent" || *calls > 0, "they are counted: {rounds:?}");
    }
}

/// Each member in turn.
const UPGRADE: &str = "upgrade-0 upgrade-1 upgrade-2";

/// Members of two versions, and then of the later one. From 3.5 to 3.7 at once is not etcd's way: that reads
/// no log of 3.5.
fn upgraded(from: Series, to: Series) {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let mut cluster = Cluster::start_of(from, 3, Security::Plain).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    let itself = server.kubeconfig().display().to_string();
    server.tell("FOREBAY_TEST_OTHER", itself);
    server.tell("FOREBAY_TEST_FAULTS", UPGRADE.to_owned());
    scenario.run_with("TestInformersAcrossFaultsOfEtcd", &mut server, Detector::Off, |order| match order {
        "@upgrade-0" => cluster.change(0, to),
        "@upgrade-1" => cluster.change(1, to),
        "@upgrade-2" => cluster.change(2, to),
        order => Err(format!("nobody knows {order}")),
    });
}

#[test]
fn informers_across_an_upgrade_of_etcd_from_3_5_to_3_6_ask_for_nothing_again() {
    upgraded(Series::V3_5, Series::V3_6);
}

#[test]
fn informers_across_an_upgrade_of_etcd_from_3_6_to_3_7_ask_for_nothing_again() {
    upgraded(Series::V3_6, Series::V3_7);
}

/// By how much kubernetes' documentation has the revision raised when a backup is restored.
const BUMP: u64 = 1_000_000_000;

/// A store is put back to an earlier state: each informer hears so once, or only those that it matters to.
fn restored(bump: Option<u64>, identity: ClusterToken) {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let mut cluster = Cluster::start(1, Security::Plain).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    if bump.is_some() {
        server.tell("FOREBAY_TEST_BUMPED", "yes".to_owned());
    }
    scenario.run_with("TestInformersAcrossARestore", &mut server, Detector::Off, |order| match order {
        "@back-up" => cluster.back_up(),
        "@restore" => cluster.restore(bump, identity),
        order => Err(format!("nobody knows {order}")),
    });
}

#[test]
fn a_backup_that_is_restored_has_every_informer_list_again_once() {
    restored(None, ClusterToken::Same);
}

#[test]
fn a_backup_that_is_restored_as_another_cluster_has_every_informer_list_again_once() {
    restored(None, ClusterToken::New);
}

#[test]
fn a_backup_that_is_restored_at_a_later_revision_concerns_only_who_saw_what_it_lacks() {
    restored(Some(BUMP), ClusterToken::Same);
}

/// Definitions in the test; `FOREBAY_TEST_CRDS=1000` gives the figures.
const DEFINITIONS: usize = 30;

/// What a server opens: one connection for keys, one for pages, four for watches.
const CONNECTIONS_MAX: u64 = 6;

#[test]
fn many_definitions_share_few_connections_to_etcd() {
    if needs::built_peers().is_none() {
        return;
    }
    let count = std::env::var("FOREBAY_TEST_CRDS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(DEFINITIONS);
    let cluster = Cluster::start_relayed(Series::V3_6, 1).expect("starts");
    let mut server = start(Implementation::Forebay, &cluster);
    let relay = &cluster.relays(0).expect("relayed").clients;
    let ask = |server: &ControlPlane, method, path: &str, body: &str| {
        server.ask(Call { method, path, body }).unwrap_or_else(|why| panic!("{path}: {why}"))
    };
    let ((), made) = timed(|| {
        for number in 0..count {
            let made = NUMBERED.replace("NUMBER", &number.to_string());
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let answer = ask(&server, "POST", path, &made);
            assert_eq!(answer.code, 201, "{}", answer.body);
        }
    });
    let of = |number: usize| format!("/apis/many.example.com/v1/namespaces/default/kind{number}s");
    let object = |number: usize, name: &str| {
        let kind = format!(r#""apiVersion":"many.example.com/v1","kind":"Kind{number}""#);
        format!(r#"{{{kind},"metadata":{{"name":"{name}"}}}}"#)
    };
    let last = count - 1;
    until("the last one is served", SEEN_MAX, || match ask(&server, "GET", &of(last), "").code {
        200 => Ok(()),
        code => Err(code.to_string()),
    })
    .expect("served");
    for number in 0..count {
        let answer = ask(&server, "POST", &of(number), &object(number, "before"));
        assert_eq!(answer.code, 201, "{}", answer.body);
    }
    assert!(relay.opened() <= CONNECTIONS_MAX, "{} connections", relay.opened());
    server.kill().expect("killed");
    let before = relay.opened();
    let (started, took) = timed(|| server.start_again());
    started.expect("starts again");
    for number in 0..count {
        let list = ask(&server, "GET", &of(number), "");
        assert!(list.code == 200 && list.body.contains(r#""name":"before""#), "{number}: {}", list.body);
    }
    let opened = relay.opened() - before;
    assert!(opened <= CONNECTIONS_MAX, "{opened} connections");
    println!(
        "figure: {count} definitions made in {:.1} s; started again in {:.2} s on {opened} connections to etcd",
        made.as_secs_f64(),
        took.as_secs_f64()
    );
}

const NUMBERED: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"kindNUMBERs.many.example.com"},
"spec":{"group":"many.example.com","scope":"Namespaced",
"names":{"plural":"kindNUMBERs","singular":"kindNUMBER","kind":"KindNUMBER"},
"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;

/// Each server and each member in turn, while others write.
const ROLL: &str = "kill start kill-1 start-1 terminate-2 start-2 kill-member restart-member";

#[test]
fn clients_of_three_servers_behind_a_balancer_go_from_one_to_the_other_and_ask_for_nothing_again() {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let mut cluster = Cluster::start(3, Security::Plain).expect("starts");
    let start = |number: usize| {
        let mut flags = cluster.flags();
        // One authority for all of them, as there is behind a balancer.
        flags.push(format!("--cert-dir={}", cluster.dir().join("pki").display()));
        flags.push(format!("--advertise-address={}", ADVERTISED[number]));
        ControlPlane::start_told(flags).unwrap_or_else(|why| panic!("{why}"))
    };
    let (mut first, mut second, mut third) = (start(0), start(1), start(2));
    let Some(kubectl) = needs::kubectl() else { return };
    let kubeconfig = first.kubeconfig().to_owned();
    let leads_to = |wanted: &[&str]| {
        let places = [
            ("endpoints", "{.subsets[*].addresses[*].ip}"),
            ("endpointslice", "{.endpoints[*].addresses[0]}"),
        ];
        until("the Service leads to them", SEEN_MAX, || {
            for (resource, path) in places {
                let mut command = std::process::Command::new(kubectl);
                command.args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()]);
                command.args([
                    "get",
                    resource,
                    "kubernetes",
                    "-n",
                    "default",
                    "-o",
                    &format!("jsonpath={path}"),
                ]);
                let output = command.output().map_err(|why| why.to_string())?;
                let text = String::from_utf8_lossy(&output.stdout);
                let mut shown: Vec<&str> = text.split_whitespace().collect();
                shown.sort_unstable();
                if shown != wanted {
                    return Err(format!("{resource}: {shown:?}"));
                }
            }
            Ok(())
        })
    };
    leads_to(&ADVERTISED).expect("all three are led to");
    let balancer = Relay::between(vec![first.port(), second.port(), third.port()]).expect("starts");
    let text = std::fs::read_to_string(first.kubeconfig()).expect("written");
    let balanced = cluster.dir().join("balanced.kubeconfig");
    let text = text.replace(&format!(":{}", first.port()), &format!(":{}", balancer.port()));
    std::fs::write(&balanced, text).expect("written");
    for variable in ["KUBECONFIG", "FOREBAY_TEST_OTHER"] {
        first.tell(variable, balanced.display().to_string());
    }
    first.tell("FOREBAY_TEST_FAULTS", ROLL.to_owned());
    scenario.run_with("TestInformersAcrossFaultsOfEtcd", &mut first, Detector::Off, |order| match order {
        "@kill-1" => second.kill(),
        "@start-1" => second.start_again(),
        "@terminate-2" => {
            third.terminate()?;
            // It says that it goes; one that was killed is led to until its lease ends.
            leads_to(&ADVERTISED[..2])
        }
        "@start-2" => third.start_again(),
        "@kill-member" => cluster.kill(1),
        "@restart-member" => cluster.restart(1),
        order => Err(format!("nobody knows {order}")),
    });
}

const ADVERTISED: [&str; 3] = ["10.0.0.11", "10.0.0.12", "10.0.0.13"];

/// What may be sent while etcd stands still: a few quorum reads, attempts to connect, and questions for
/// progress. A request for each of 300 lists would be more.
const STALLED_BYTES_MAX: u64 = 20_000;

/// What is made at one server behind a definition, which is kept as JSON: built-in kinds that are kept as
/// messages.
const MADE: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: pod-SIDE, labels: {side: SIDE}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: deployment-SIDE}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Secret
metadata: {name: secret-SIDE}
stringData: {a: b}
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: autoscaler-SIDE}
spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 7, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role-SIDE}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ingress-SIDE}
spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: event-SIDE}
eventTime: '2026-01-01T00:00:00.000000Z'
type: Normal
reason: because
action: acted
note: hello
reportingController: example.com/c
reportingInstance: i
regarding: {kind: Pod, namespace: beside, name: pod-SIDE, apiVersion: v1}
";

/// What is shown of it, all of it, without what only one of the servers keeps.
const SHOWN: &str = "kubectl get crd/things-SIDE.example.com pod/pod-SIDE deployment/deployment-SIDE \
                     secret/secret-SIDE hpa/autoscaler-SIDE role/role-SIDE ingress/ingress-SIDE \
                     event/event-SIDE -o json --show-managed-fields=false";

#[test]
fn ours_and_kube_apiserver_read_each_others_objects_and_see_each_others_writes() {
    if needs::built_peers().is_none() {
        return;
    }
    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    // Theirs first: it finds an empty store and fills it, and ours finds that.
    let flags = ["--feature-gates=AllowUnsafeMalformedObjectDeletion=true", "--authorization-mode=RBAC"];
    let theirs = ControlPlane::start_rival_told(&cluster, &flags).unwrap_or_else(|why| panic!("{why}"));
    let ours = start(Implementation::Forebay, &cluster);
    let (Some(there), Some(here)) = (Session::new(&theirs, "beside"), Session::open(&ours, "beside")) else {
        return;
    };
    for (side, writer, reader) in [("here", &here, &there), ("there", &there, &here)] {
        let mut watching = reader.follow("kubectl get pods -w -o name");
        let made = [DEFINITION, MADE].concat().replace("SIDE", side);
        writer.file("made.yaml", &made);
        let created = writer.run("kubectl create -f made.yaml");
        assert_eq!(created.matches(" created").count(), 8, "{side}: {created}");
        watching.until(&format!("pod/pod-{side}"));
        // The definition's conditions are written after it is, and each server finds out for itself that it
        // is to serve it.
        for session in [writer, reader] {
            let served = until("it is served", SEEN_MAX, || {
                let said = session.transcript(&format!("kubectl get things-{side}"));
                if said.contains("No resources found") { Ok(()) } else { Err(said) }
            });
            served.unwrap_or_else(|why| panic!("{why}"));
        }
        let shown = SHOWN.replace("SIDE", side);
        let (written, read) = (json(&writer.run(&shown)), json(&reader.run(&shown)));
        assert_eq!(written["items"].as_array().map(Vec::len), Some(8), "{written}");
        assert_eq!(written, read, "made {side}");
        // What is made of the definition is served at both, too.
        writer.file(
            "thing.yaml",
            &format!("{{apiVersion: example.com/v1, kind: Thing{side}, metadata: {{name: x}}, value: 1}}"),
        );
        writer.run("kubectl create -f thing.yaml");
        let thing = format!("kubectl get things-{side} x -o json --show-managed-fields=false");
        assert_eq!(json(&writer.run(&thing)), json(&reader.run(&thing)));
        // Changed and deleted at the other one.
        reader.run(&format!("kubectl label pod pod-{side} changed=yes"));
        assert_eq!(
            writer
                .run(&format!("kubectl get pod pod-{side} -o jsonpath={{.metadata.labels.changed}}"))
                .trim(),
            "yes"
        );
        reader.run(&format!("kubectl delete pod pod-{side} --grace-period=0 --force"));
        let gone = writer.transcript(&format!("kubectl get pod pod-{side}"));
        assert!(gone.contains("not found"), "{gone}");
    }
    broken::values(&cluster, (&ours, &here), (&theirs, &there));
}

/// How long a server may take to see what another one did.
const SEEN_MAX: Duration = Duration::from_secs(120);

fn json(text: &str) -> serde_json::Value {
    let begin = text.find('{').unwrap_or(0);
    let mut stream = serde_json::Deserializer::from_str(&text[begin..]).into_iter();
    stream.next().and_then(Result::ok).unwrap_or_else(|| panic!("no JSON: {text}"))
}
