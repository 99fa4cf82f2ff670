//! Access to devices past their users, which only some namespaces may have.
//!
//! In: a claim or a template, and for an update the stored one. Out: where it asks for that. Never: reads a
//! namespace.
//!
//! Source: kubernetes v1.36.3 `registry/resource/utils.go`.

use serde_json::Value;

/// What the namespace of those who ask must be labelled with.
pub const LABEL: &str = "resource.kubernetes.io/admin-access";

/// The field by which a new object, or a new allocation, asks for it.
pub fn wanted(object: &Value, old: Option<&Value>) -> Option<String> {
    match old {
        None => {
            let nested = &object["spec"]["spec"]["devices"];
            let devices = if nested.is_object() { nested } else { &object["spec"]["devices"] };
            let index = first(&devices["requests"], |request| request["exactly"]["adminAccess"] == true)?;
            Some(format!("spec.devices.requests[{index}].adminAccess"))
        }
        Some(old) => {
            let granted = |of: &Value| {
                first(&of["status"]["allocation"]["devices"]["results"], |of| of["adminAccess"] == true)
            };
            let index = granted(object).filter(|_| granted(old).is_none())?;
            Some(format!("status.allocation.devices.results[{index}].adminAccess"))
        }
    }
}

fn first(list: &Value, is: impl Fn(&Value) -> bool) -> Option<usize> {
    list.as_array()?.iter().position(is)
}

#[cfg(test)]
mod unit {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_asks_for_admin_access_is_found() {
        let request = |admin: bool| json!({"name": "r", "exactly": {"adminAccess": admin}});
        let devices = json!({"requests": [request(false), request(true)]});
        let at = Some("spec.devices.requests[1].adminAccess".to_string());
        assert_eq!(wanted(&json!({"spec": {"devices": devices}}), None), at);
        assert_eq!(wanted(&json!({"spec": {"spec": {"devices": devices}}}), None), at);
        assert_eq!(wanted(&json!({"spec": {"devices": {"requests": [request(false)]}}}), None), None);
        let allocated = json!({"status": {"allocation": {"devices": {"results": [{"adminAccess": true}]}}}});
        let at = Some("status.allocation.devices.results[0].adminAccess".to_string());
        assert_eq!(wanted(&allocated, Some(&json!({}))), at);
        assert_eq!(wanted(&allocated, Some(&allocated)), None);
    }
}
