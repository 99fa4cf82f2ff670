//! What an APIService says.
//!
//! In: one, as a tree. Out: which version it is of, and who serves that. Never: judged here; it was validated
//! when it was written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_proxy::{ServiceReference, Trust};
use serde_json::Value;

use crate::condition::Condition;

/// An APIService whose version another server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub group: Box<str>,
    pub version: Box<str>,
    pub group_priority: u32,
    pub version_priority: u32,
    pub service: ServiceReference,
    pub trust: Trust,
}

impl Registered {
    /// `None`: this server serves it itself.
    pub fn read(value: &Value) -> Option<Registered> {
        let spec = &value["spec"];
        let service = spec.get("service").filter(|service| !service.is_null())?;
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().into();
        let number = |name: &str| spec[name].as_u64().and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let bundle = spec["caBundle"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let bundle = bundle.filter(|bundle| !bundle.is_empty());
        let trust = match (spec["insecureSkipTLSVerify"] == true, bundle) {
            (true, _) => Trust::Anybody,
            (false, Some(bundle)) => Trust::Bundle(bundle),
            (false, None) => Trust::System,
        };
        Some(Registered {
            group: text(spec, "group"),
            version: text(spec, "version"),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            service: ServiceReference {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                port: port.unwrap_or(443),
            },
            trust,
        })
    }

    /// What its server's certificate is for.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service.name, self.service.namespace)
    }

    /// The path of its version.
    pub fn path(&self) -> String {
        match &*self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

/// Whether its condition says that its server is there.
pub fn is_available(value: &Value) -> bool {
    Condition::of(value).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_serves_a_version_is_read_with_who_vouches_for_it() {
        let local = json!({ "spec": { "group": "apps", "version": "v1" } });
        assert_eq!(Registered::read(&local), None);
        let remote = |more: Value| {
            let mut value = json!({ "spec": {
                "group": "a.io", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": { "namespace": "ns", "name": "svc" },
            } });
            for (name, member) in more.as_object().expect("members") {
                value["spec"][name] = member.clone();
            }
            Registered::read(&value).expect("remote")
        };
        let plain = remote(json!({}));
        assert_eq!((plain.service.port, &plain.trust), (443, &Trust::System));
        assert_eq!((plain.server_name().as_str(), plain.path().as_str()), ("svc.ns.svc", "/apis/a.io/v1"));
        assert_eq!(remote(json!({ "caBundle": "YQ==" })).trust, Trust::Bundle(b"a".to_vec()));
        assert_eq!(remote(json!({ "insecureSkipTLSVerify": true })).trust, Trust::Anybody);
    }

    #[test]
    fn a_condition_says_whether_it_is_there() {
        let of =
            |status: &str| json!({ "status": { "conditions": [{ "type": "Available", "status": status }] } });
        assert!(is_available(&of("True")) && !is_available(&of("Unknown")) && !is_available(&json!({})));
    }
}
