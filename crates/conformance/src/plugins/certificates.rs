//! Cases of the plugins of certificates: who may be asked for, and who may approve and sign.
//!
//! In: a plugin, a seed by way of [`Draw`]. Out: a [`PluginCase`] with steps. Never: a role or a request that
//! another case has.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::der::{self, SORTS, STRINGS, SubjectName};
use super::small::{case, changed, made, step};
use super::{Draw, PluginCase, PluginStep, Until};
use crate::pair::ActsAs;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const SIGNERS: [&str; 6] = [
    CLIENT,
    CLIENT,
    CLIENT,
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "example.com/s",
];
const TEXTS: [&str; 8] = [
    "system:masters",
    "system:masters",
    "system:masters",
    "System:Masters",
    "system:masters ",
    "system:nodes",
    "jürgen",
    "",
];
/// Times of cases are at midnight.
const AT: &str = "2026-01-01T00:00:00Z";

/// What a user may do by a part of a request for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPart {
    Approval,
    Status,
}

impl Draw {
    pub(super) fn subjects(&self, name: String) -> PluginCase {
        let requests = (0..4).map(|at| {
            let subject: Vec<Vec<SubjectName>> = (0..self.below(4))
                .map(|_| (0..1 + self.below(3) / 2).map(|_| self.name_of_subject()).collect())
                .collect();
            let label = if self.percent(95) { "CERTIFICATE REQUEST" } else { "CERTIFICATE" };
            let pem = match self.percent(97) {
                true => der::request(&subject, label, self.percent(3)),
                false => "no PEM".to_owned(),
            };
            made(REQUESTS, self.certificate_request(&format!("{name}-{at}"), self.one(&SIGNERS), &pem))
        });
        let steps = requests.collect();
        case(name, steps)
    }

    fn name_of_subject(&self) -> SubjectName {
        // Most are of the two types that are written in our days.
        let string = if self.percent(60) { self.one(&[STRINGS[0], STRINGS[2]]) } else { self.one(&STRINGS) };
        let sort = if self.percent(60) { SORTS[0] } else { self.one(&SORTS) };
        SubjectName { sort, string, text: self.one(&TEXTS) }
    }

    fn certificate_request(&self, name: &str, signer: &str, pem: &str) -> Value {
        let usages = self.one(&[&["client auth"][..], &["digital signature", "client auth"]]);
        let mut spec = json!({"request": STANDARD.encode(pem), "signerName": signer, "usages": usages});
        if self.percent(30) {
            spec["expirationSeconds"] = json!(self.one(&[600, 599, 86_400]));
        }
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name}, "spec": spec,
        })
    }

    pub(super) fn approvals(&self, name: String) -> PluginCase {
        self.signers(name, RequestPart::Approval)
    }

    pub(super) fn signings(&self, name: String) -> PluginCase {
        self.signers(name, RequestPart::Status)
    }

    /// A user who may change the part, and perhaps approve or sign for some signer, changes it.
    fn signers(&self, name: String, part: RequestPart) -> PluginCase {
        let signer = self.one(&["example.com/s", "example.com/other", CLIENT]);
        let subject = [vec![SubjectName { sort: SORTS[1], string: STRINGS[0], text: "ann" }]];
        let pem = der::request(&subject, "CERTIFICATE REQUEST", false);
        let mut request = self.certificate_request(&name, signer, &pem);
        request["spec"]["expirationSeconds"] = json!(600);
        let own = "certificates.k8s.io";
        let mut rules = vec![json!({
            "apiGroups": [own],
            "resources": [
                "certificatesigningrequests", "certificatesigningrequests/approval",
                "certificatesigningrequests/status",
            ],
            "verbs": ["get", "update", "patch"],
        })];
        rules.extend((0..self.below(3)).map(|_| {
            let verb = match part {
                RequestPart::Approval => self.one(&["approve", "approve", "approve", "sign", "*"]),
                RequestPart::Status => self.one(&["sign", "sign", "sign", "approve", "*"]),
            };
            let mut rule = json!({
                "apiGroups": [self.one(&[own, own, own, "*", ""])],
                "resources": [self.one(&["signers", "signers", "signers", "*", "signers/x"])],
                "verbs": [verb],
            });
            let names =
                ["example.com/s", "example.com/*", "example.com/other", "kubernetes.io/*", CLIENT, "*"];
            if self.percent(85) {
                rule["resourceNames"] = (0..1 + self.below(2)).map(|_| self.one(&names)).collect();
            }
            rule
        }));
        let rights = "rbac.authorization.k8s.io";
        let user = ActsAs { name: format!("u-{name}"), groups: Vec::new() };
        let role = json!({
            "apiVersion": format!("{rights}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{rights}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rights, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": rights, "kind": "User", "name": user.name}],
        });
        let path = format!("{REQUESTS}/{name}");
        let rbac = |resource: &str| format!("/apis/{rights}/v1/{resource}");
        let heard = PluginStep {
            until: Some(Until::Code(200)),
            user: Some(user.clone()),
            ..step(Method::GET, path.clone(), Value::Null)
        };
        let mut steps = vec![
            made(REQUESTS, request),
            made(&rbac("clusterroles"), role),
            made(&rbac("clusterrolebindings"), binding),
            heard,
        ];
        for _ in 0..1 + self.below(3) {
            let (at, change) = match part {
                RequestPart::Approval => ("approval", self.approved()),
                RequestPart::Status => ("status", self.signed()),
            };
            let user = self.percent(90).then(|| user.clone());
            steps.push(PluginStep { user, ..changed(format!("{path}/{at}"), change) });
        }
        steps.push(step(Method::GET, path, Value::Null));
        case(name, steps)
    }

    fn approved(&self) -> Value {
        match self.below(5) {
            0 => json!({"metadata": {"annotations": {"a": "b"}}}),
            1 => json!({"status": {"conditions": []}}),
            2 => json!({"status": {"conditions": [condition("Denied")]}}),
            _ => json!({"status": {"conditions": [condition("Approved")]}}),
        }
    }

    fn signed(&self) -> Value {
        let certificate = || STANDARD.encode(der::certificate());
        match self.below(6) {
            0 => json!({"metadata": {"annotations": {"a": "b"}}}),
            1 => json!({"status": {"conditions": []}}),
            2 => json!({"status": {"conditions": [condition("Failed")]}}),
            3 => json!({"status": {"conditions": [condition("Failed")], "certificate": certificate()}}),
            _ => json!({"status": {"certificate": certificate()}}),
        }
    }
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": "Drawn", "message": "m", "lastUpdateTime": AT,
        "lastTransitionTime": AT,
    })
}
