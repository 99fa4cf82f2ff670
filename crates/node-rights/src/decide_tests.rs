//! Decisions, a line each: `verb group resource/subresource namespace/name ?selector`.

use forebay_apimachinery::selector::FieldSelector;
use forebay_apimachinery::{Caller, Verb};
use serde_json::json;

use super::*;
use crate::{PodLinks, VolumeLinks};

fn graph() -> NodeGraph {
    let mut graph = NodeGraph::default();
    for (name, node) in [("own", "n1"), ("other", "n2")] {
        let pod = json!({
            "metadata": { "name": name },
            "spec": {
                "nodeName": node, "serviceAccountName": name,
                "volumes": [
                    { "name": "s", "secret": { "secretName": name } },
                    { "name": "m", "configMap": { "name": name } },
                    { "name": "c", "persistentVolumeClaim": { "claimName": name } },
                ],
                "resourceClaims": [{ "name": "r", "resourceClaimName": name }],
            },
        });
        let links = PodLinks::read(pod.to_string().as_bytes()).expect("a pod");
        graph.put_pod("ns", name, links.as_ref());
        let volume = json!({ "spec": {
            "claimRef": { "namespace": "ns", "name": name },
            "csi": { "nodeStageSecretRef": { "namespace": "csi", "name": name } },
        } });
        let links = VolumeLinks::read(volume.to_string().as_bytes()).expect("a volume");
        graph.put_volume(name, links.as_ref());
        graph.put_attachment(name, Some(node));
        graph.put_slice(name, Some(node));
    }
    graph
}

fn ruling(graph: &NodeGraph, caller: &Caller, line: &str) -> NodeRuling {
    let mut words = line.split(' ');
    let verb = Verb::named(words.next().expect("a verb"));
    let rest: Vec<&str> = words.collect();
    let selector = rest.iter().find_map(|word| word.strip_prefix('?'));
    let selector = FieldSelector::parse(selector.unwrap_or("")).expect("a selector");
    let about = match rest.as_slice() {
        [path] => About::Path(path),
        [group, resource, place, ..] => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let (namespace, name) = place.split_once('/').expect("a place");
            let group = if *group == "-" { "" } else { *group };
            let fields = selector.requirements();
            let of = ResourceAttributes {
                group,
                resource,
                subresource,
                namespace,
                name,
                fields,
                ..Default::default()
            };
            About::Resource(of)
        }
        _ => panic!("{line}"),
    };
    decide(graph, &Attributes { caller, verb: &verb, about })
}

fn node(name: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().map(ToString::to_string).collect();
    Caller { name: name.to_owned(), groups, ..Caller::default() }
}

/// What is said of `line`: `yes`, or why not.
fn said(line: &str) -> String {
    match ruling(&graph(), &node("system:node:n1", &["system:nodes"]), line) {
        Allowed => "yes".to_owned(),
        NotAllowed(why) => why.into_owned(),
        NodeRuling::NoNode => "nobody".to_owned(),
    }
}

const UNRELATED: &str = "no relationship found between node 'n1' and this object";

#[test]
fn what_pods_of_a_node_name_is_read_by_it_and_no_other() {
    for (verb, what) in [
        ("get", "- secrets ns/"),
        ("list", "- secrets ns/"),
        ("watch", "- configmaps ns/"),
        ("get", "- secrets csi/"),
        ("get", "- persistentvolumeclaims ns/"),
        ("update", "- persistentvolumeclaims/status ns/"),
        ("get", "- persistentvolumes /"),
        ("get", "resource.k8s.io resourceclaims ns/"),
        ("get", "storage.k8s.io volumeattachments /"),
        ("get", "- serviceaccounts ns/"),
        ("create", "- serviceaccounts/token ns/"),
        ("patch", "resource.k8s.io resourceslices /"),
        ("get", "- pods ns/"),
        ("watch", "- pods ns/"),
    ] {
        assert_eq!(said(&format!("{verb} {what}own")), "yes", "{verb} {what}");
        assert_eq!(said(&format!("{verb} {what}other")), UNRELATED, "{verb} {what}");
        assert_eq!(said(&format!("{verb} {what}gone")), UNRELATED, "{verb} {what}");
    }
}

#[test]
fn what_is_not_allowed_is_refused_in_upstreams_words() {
    let only = "can only get individual resources of this type";
    for (line, want) in [
        ("update - secrets ns/own", "can only read resources of this type"),
        ("list - secrets ns/", "No Object name found"),
        ("list - secrets /", "can only read namespaced object of this type"),
        ("get - secrets/x ns/own", "cannot read subresource"),
        ("list - persistentvolumeclaims ns/own", only),
        ("get - persistentvolumeclaims/x ns/own", "cannot get subresource"),
        ("get - persistentvolumeclaims/status ns/own", "can only get/update/patch this type"),
        ("list - persistentvolumes /", only),
        ("list - serviceaccounts ns/own", "can only create tokens for individual service accounts"),
        ("create - serviceaccounts/x ns/own", "can only create token subresource of serviceaccount"),
        (
            "list coordination.k8s.io leases kube-node-lease/",
            "can only get, create, update, patch, or delete a node lease",
        ),
        (
            "get coordination.k8s.io leases ns/n1",
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        ("get coordination.k8s.io leases kube-node-lease/n1", "yes"),
        ("create coordination.k8s.io leases kube-node-lease/", "yes"),
        (
            "update coordination.k8s.io leases kube-node-lease/n2",
            "can only access node lease with the same name as the requesting node",
        ),
        ("get storage.k8s.io csinodes /n1", "yes"),
        (
            "get storage.k8s.io csinodes /n2",
            "can only access CSINode with the same name as the requesting node",
        ),
        ("get storage.k8s.io csinodes/x /n1", "cannot authorize CSINode subresources"),
        ("list storage.k8s.io csinodes /", "can only get, create, update, patch, or delete a CSINode"),
        ("create resource.k8s.io resourceslices /", "yes"),
        ("get resource.k8s.io resourceslices/x /own", "cannot authorize ResourceSlice subresources"),
        (
            "list resource.k8s.io resourceslices /",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("list resource.k8s.io resourceslices / ?spec.nodeName=n1", "yes"),
        (
            "bind resource.k8s.io resourceslices /own",
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
        ),
        ("get - nodes /n1", "yes"),
        ("get - nodes /n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("list - nodes /", "node 'n1' cannot read all nodes, only its own Node object"),
        ("delete - nodes /n1", ""),
        ("patch - nodes/status /n1", "yes"),
        ("get - nodes/status /n1", ""),
        ("list - pods /", "can only list/watch pods with spec.nodeName field selector"),
        ("list - pods / ?spec.nodeName=n1", "yes"),
        ("list - pods / ?spec.nodeName!=n1", "can only list/watch pods with spec.nodeName field selector"),
        ("list - pods / ?spec.nodeName=n2", "can only list/watch pods with spec.nodeName field selector"),
        ("create - pods ns/", "yes"),
        ("update - pods ns/own", ""),
        ("create - pods/eviction ns/other", "yes"),
        ("get - pods/log ns/own", ""),
        ("get certificates.k8s.io podcertificaterequests ns/x", ""),
        ("get certificates.k8s.io clustertrustbundles /x", ""),
        ("create certificates.k8s.io certificatesigningrequests /", "yes"),
        ("list - services /", "yes"),
        ("create events.k8s.io events ns/", "yes"),
        ("get - namespaces /ns", ""),
        ("get /version", ""),
    ] {
        assert_eq!(said(line), want, "{line}");
    }
}

#[test]
fn only_a_user_that_is_called_as_a_node_and_in_their_group_is_one() {
    let line = "get - pods ns/own";
    for (name, groups, want) in [
        ("system:node:n1", &["system:nodes"][..], Allowed),
        ("system:node:n1", &[], NodeRuling::NoNode),
        ("n1", &["system:nodes"], NodeRuling::NoNode),
        ("system:node:", &["system:nodes"], NotAllowed("unknown node for user \"system:node:\"".into())),
    ] {
        assert_eq!(ruling(&graph(), &node(name, groups), line), want, "{name}");
    }
}
