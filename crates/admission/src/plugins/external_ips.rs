//! DenyServiceExternalIPs: no service begins to use an external IP, which whoever routes traffic would send
//! it to.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/network/denyserviceexternalips`.

use forebay_apimachinery::Seen;
use serde_json::Value;

use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

pub struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    optional! { "DenyServiceExternalIPs", stores "services" }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |_| match has_more(object, write.old) {
            true => Err("Use of external IPs is denied by admission control".to_owned()),
            false => Ok(()),
        })
    }
}

fn has_more(service: &Value, old: Option<&Value>) -> bool {
    let known: Seen<&str> = old.into_iter().flat_map(ips).collect();
    ips(service).any(|ip| !known.has(ip))
}

fn ips(service: &Value) -> impl Iterator<Item = &str> {
    service["spec"]["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ips_may_stay_and_go_and_none_may_come() {
        let service = |ips: &[&str]| json!({ "spec": { "externalIPs": ips } });
        assert!(!has_more(&json!({ "spec": {} }), None));
        assert!(has_more(&service(&["1.1.1.1"]), None));
        let old = service(&["1.1.1.1", "2.2.2.2"]);
        assert!(!has_more(&service(&["2.2.2.2"]), Some(&old)));
        assert!(has_more(&service(&["2.2.2.2", "3.3.3.3"]), Some(&old)));
        assert!(!has_more(&service(&[]), Some(&old)));
    }
}
